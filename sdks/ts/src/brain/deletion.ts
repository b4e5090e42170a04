import { mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

import { removeDatabase } from "../index/database.js";
import type { BrainPaths } from "./home.js";
import { acquire } from "./lock.js";
import { statusOf } from "./tree.js";

/** Move the files of a closed brain into a new folder of `staging`; returns that folder. */
export function moveToTrash({
  documents,
  sidecars,
  description,
  index,
  lock,
  staging,
}: BrainPaths): string {
  const indexLock = acquire(lock);
  try {
    const trash = mkdtempSync(join(staging, "ts-deleted-"));
    renameSync(documents, join(trash, "documents"));
    if (statusOf(sidecars) !== undefined) renameSync(sidecars, join(trash, "sidecars"));
    rmSync(description, { force: true });
    if (indexLock !== undefined) removeDatabase(index);
    return trash;
  } finally {
    indexLock?.release();
  }
}
