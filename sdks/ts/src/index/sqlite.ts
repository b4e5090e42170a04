/** SQLite as an index uses it: connections that close their file at once, and texts that may hold NUL. */

import { resolve } from "node:path";

import { DatabaseSync } from "@photostructure/sqlite";

/** The schema that a connection's file is attached as. */
export const SCHEMA = "store";

const SQLITE_ERROR = 1;
const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

/** Of pages; SQLite's own 2,000 KiB are less than the index of 10,000 short documents. */
const CACHE_KIB = 16_000;

export type Parameter = string | number | null | Uint8Array;

/** Its rows are arrays, which cost less than objects. */
export interface Statement<Parameters extends Parameter[], Row extends unknown[] = never> {
  run(...parameters: Parameters): unknown;
  get(...parameters: Parameters): Row | undefined;
  all(...parameters: Parameters): Row[];
  iterate(...parameters: Parameters): Iterable<Row>;
}

/**
 * A connection to the database at `file`, which is created where it does not exist.
 *
 * The file is attached to an empty database in memory, because detaching closes it at once. The library
 * cannot finalize statements: a connection that is closed holds its file until they are collected as
 * garbage, and then removes the WAL by its name, which may by then be another connection's.
 */
export class Connection {
  // Waiting for a lock would stop every request; the lock file says whose the index is.
  readonly #database = new DatabaseSync(":memory:", { timeout: 0, returnArrays: true });

  constructor(file: string) {
    // SQLite takes a name that begins with `file:` for a URI; an absolute path begins with a slash.
    const name = file === ":memory:" ? file : resolve(file);
    try {
      this.exec(`ATTACH '${name.replaceAll("'", "''")}' AS ${SCHEMA}`);
      this.exec(`PRAGMA ${SCHEMA}.cache_size = -${CACHE_KIB}`);
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  close(): void {
    try {
      this.exec(`DETACH ${SCHEMA}`);
    } finally {
      this.#database.close();
    }
  }

  exec(sql: string): void {
    this.#database.exec(sql);
  }

  prepare<Parameters extends Parameter[], Row extends unknown[] = never>(
    sql: string,
  ): Statement<Parameters, Row> {
    return this.#database.prepare(sql);
  }

  /** What a pragma of the file says first. */
  pragma(name: string): unknown {
    return this.prepare<[], unknown[]>(`PRAGMA ${SCHEMA}.${name}`).get()?.[0];
  }

  /** Makes all of what `work` changes, or nothing of it where it throws. */
  transaction(work: () => void): void {
    this.exec("BEGIN IMMEDIATE");
    try {
      work();
      this.exec("COMMIT");
    } catch (error) {
      // A full disk, for one, has ended it already.
      if (this.#database.isTransaction) this.exec("ROLLBACK");
      throw error;
    }
  }
}

/** A text for `CAST(? AS TEXT)`. The library ends strings at their first NUL, and bytes nowhere. */
export function toParameter(text: string): string | Uint8Array {
  return text.includes("\0") ? Buffer.from(text) : text;
}

/** The text of `CAST(… AS BLOB)`; the library ends strings that it reads at their first NUL. */
export function toText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}

/** Whether SQLite reported the error. */
export function isSqliteError(error: unknown): error is Error & { errcode?: number } {
  return error instanceof Error && "code" in error && error.code === "ERR_SQLITE_ERROR";
}

/** Whether another connection holds the file. */
export function isBusy(error: unknown): boolean {
  return resultCode(error) === SQLITE_BUSY;
}

/** Whether the file is no database, one of a format that SQLite refuses, or one in which pages are wrong. */
export function isDamage(error: unknown): boolean {
  const code = resultCode(error);
  return code === SQLITE_ERROR || code === SQLITE_CORRUPT || code === SQLITE_NOTADB;
}

/** The primary result code, without what extends it. */
function resultCode(error: unknown): number | undefined {
  if (!isSqliteError(error)) return undefined;
  if (error.errcode !== undefined) return error.errcode & 0xff;
  // The library's `all` and `iterate` report the message alone.
  return error.message === "database disk image is malformed" ? SQLITE_CORRUPT : undefined;
}
