import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";

import { lockFile } from "../files/lock.js";
import type { Staging } from "../files/staging.js";
import { statusOf } from "../files/tree.js";
import { removeLog } from "../index/log.js";
import type { BrainPaths } from "./layout.js";

/**
 * Move the files of a closed brain into a new folder of `staging`; returns that folder.
 *
 * Moving the documents deletes the brain. A failure before that leaves the brain as it was; what a failure
 * after that leaves behind is not given to a new brain of the same id.
 */
export function moveToTrash(paths: BrainPaths, staging: Staging): string {
  const trash = staging.newFolder();
  // The index is rebuilt if the brain stays.
  removeIndex(paths);
  renameSync(paths.documents, join(trash, "documents"));
  try {
    removeLeftovers(paths, trash);
  } catch {
    // Creating a brain with this id removes them first.
  }
  return trash;
}

/** Move what is left of a brain without its documents into `trash`. */
export function removeLeftovers({ sidecars, description }: BrainPaths, trash: string): void {
  if (statusOf(sidecars) !== undefined) renameSync(sidecars, join(trash, "sidecars"));
  rmSync(description, { force: true });
}

/** Remove the index of a closed brain, unless it belongs to another daemon. */
export function removeIndex({ index, lock }: BrainPaths): void {
  const indexLock = lockFile(lock);
  if (indexLock !== undefined) removeLog(index);
  indexLock?.close();
}
