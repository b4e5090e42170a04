/** Which daemon owns an index. */

import { rmSync } from "node:fs";
import { resolve } from "node:path";

import { DatabaseSync } from "@photostructure/sqlite";

import { isBusy, isDamage } from "../index/sqlite.js";

/** StoredDocument until it is closed, or until the process ends, however it ends. */
export interface Lock {
  release(): void;
}

/**
 * Takes the lock, or returns undefined where another daemon has it. Node has no flock; SQLite locks its
 * files with the operating system's own locks, which end with the process, so an exclusive
 * transaction on an empty database is one. It is not the index itself: that one is removed and
 * made anew where it is damaged, and the lock must outlast this.
 */
export function acquire(file: string): Lock | undefined {
  try {
    return attempt(file);
  } catch (error) {
    if (!isDamage(error)) throw error;
    // Nobody holds what cannot be read; nothing was ever written to it.
    rmSync(file);
    return attempt(file);
  }
}

function attempt(file: string): Lock | undefined {
  // Absolute, because SQLite takes a name that begins with `file:` for a URI. Prepare no statement: the
  // lock would be held until it is collected as garbage.
  const database = new DatabaseSync(resolve(file), { timeout: 0 });
  try {
    database.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    if (isBusy(error)) return undefined;
    throw error;
  }
  return {
    release: () => {
      database.close();
    },
  };
}
