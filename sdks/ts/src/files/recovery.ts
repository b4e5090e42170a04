/** Undoing the changes of daemons that no longer run, whichever SDK they were of. */

import { readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";

import { endJournal, hasJournal, readSteps } from "./journal.js";
import { lockFile } from "./lock.js";
import { undo } from "./undo.js";

/**
 * Undo and remove what daemons left in `staging` that no longer run. A change that cannot be undone stays
 * for the next start.
 *
 * @returns One error for each daemon with such changes.
 */
export function recover(staging: string): Error[] {
  return foldersIn(staging).flatMap((folder) => {
    try {
      const lock = lockFile(join(folder, "lock"));
      if (lock === undefined) return [];
      try {
        const faults = recoverDaemon(dirname(staging), folder);
        if (faults.length === 0) rmSync(folder, { recursive: true, force: true });
        return faults;
      } finally {
        lock.close();
      }
    } catch (error) {
      return [new Error(`${folder}: ${String(error)}`, { cause: error })];
    }
  });
}

function recoverDaemon(home: string, folder: string): Error[] {
  if (hasJournal(folder))
    return [new Error(`${folder}: a change of another format is left as it is`)];
  return foldersIn(folder)
    .filter(hasJournal)
    .flatMap((change) => {
      try {
        const faults = undo(home, change, readSteps(change));
        if (faults.length > 0) throw new AggregateError(faults, faults.map(String).join("; "));
        // The journal goes first, so that a folder that is half removed is never undone.
        endJournal(change);
        rmSync(change, { recursive: true, force: true });
        return [];
      } catch (error) {
        return [new Error(`${change}: ${String(error)}`, { cause: error })];
      }
    });
}

function foldersIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(folder, entry.name));
}
