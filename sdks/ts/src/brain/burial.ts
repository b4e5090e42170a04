import { mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

import { removeDatabase } from "../index/database.js";
import type { Places } from "./home.js";
import { acquire } from "./lock.js";
import { statusOf } from "./tree.js";

/** Ends a brain that is not open; what is left of it lies in the folder that is returned. */
export function bury({ documents, sidecars, description, index, lock, staging }: Places): string {
  const owned = acquire(lock);
  try {
    const grave = mkdtempSync(join(staging, "ts-deleted-"));
    renameSync(documents, join(grave, "documents"));
    if (statusOf(sidecars) !== undefined) renameSync(sidecars, join(grave, "sidecars"));
    rmSync(description, { force: true });
    if (owned !== undefined) removeDatabase(index);
    return grave;
  } finally {
    owned?.release();
  }
}
