/** File locks between daemons. */

import { rmSync } from "node:fs";
import { resolve } from "node:path";

import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";

const SQLITE_BUSY = 5;
const SQLITE_NOTADB = 26;

/** A lock that is held until it is closed or the process ends, however it ends. */
export type Lock = Pick<DatabaseSyncInstance, "close">;

/**
 * Acquire the lock, after blocking for at most `waitMs`; undefined if another daemon holds it. Node has
 * no locks on files, but SQLite locks its files with the operating system's, which end with the process,
 * so an exclusive transaction on an empty database serves as one. It is not the log of an index, which
 * is replaced when it is rewritten.
 */
export function lockFile(file: string, waitMs = 0): Lock | undefined {
  try {
    return attempt(file, waitMs);
  } catch (error) {
    if (resultCode(error) !== SQLITE_NOTADB) throw error;
    // A damaged lock file is held by nobody, and it holds no data.
    rmSync(file);
    return attempt(file, waitMs);
  }
}

function attempt(file: string, waitMs: number): Lock | undefined {
  // Absolute, because SQLite parses a name that begins with `file:` as a URI. Prepare no statement: it
  // would hold the lock until it is garbage-collected.
  const database = new DatabaseSync(resolve(file), { timeout: waitMs });
  try {
    database.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    if (resultCode(error) === SQLITE_BUSY) return undefined;
    throw error;
  }
  return database;
}

/** SQLite's primary result code, without the extended bits. */
function resultCode(error: unknown): number | undefined {
  const isCoded = error instanceof Error && "errcode" in error && typeof error.errcode === "number";
  return isCoded ? (error.errcode as number) & 0xff : undefined;
}
