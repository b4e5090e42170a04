import { mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

import { removeDatabase } from "../index/database.js";
import type { Places } from "./home.js";
import { acquire } from "./lock.js";
import { statusOf } from "./tree.js";

/** Move the files of a brain that is not open into a folder to be removed; returns that folder. */
export function moveAway({
  documents,
  sidecars,
  description,
  index,
  lock,
  staging,
}: Places): string {
  const owned = acquire(lock);
  try {
    const removed = mkdtempSync(join(staging, "ts-deleted-"));
    renameSync(documents, join(removed, "documents"));
    if (statusOf(sidecars) !== undefined) renameSync(sidecars, join(removed, "sidecars"));
    rmSync(description, { force: true });
    if (owned !== undefined) removeDatabase(index);
    return removed;
  } finally {
    owned?.release();
  }
}
