import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";

import { removeDatabase } from "../index/database.js";
import type { BrainPaths } from "./home.js";
import { acquire } from "./lock.js";
import type { Staging } from "./staging.js";
import { statusOf } from "./tree.js";

/**
 * Move the files of a closed brain into a new folder of `staging`; returns that folder.
 *
 * Without its documents there is no brain: what fails before them leaves the brain as it was, and what fails after them
 * leaves nothing that a brain of the same id would get.
 */
export function moveToTrash(paths: BrainPaths, staging: Staging): string {
  const trash = staging.newFolder();
  // It is made again if the brain stays.
  removeIndex(paths);
  renameSync(paths.documents, join(trash, "documents"));
  try {
    removeLeftovers(paths, trash);
  } catch {
    // Creating a brain of this id removes them, or fails.
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
  const indexLock = acquire(lock);
  if (indexLock !== undefined) removeDatabase(index);
  indexLock?.release();
}
