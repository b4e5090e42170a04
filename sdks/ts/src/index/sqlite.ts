/** A SQLite wrapper whose connections close their file at once and whose texts may contain NUL. */

import { resolve } from "node:path";

import { DatabaseSync } from "@photostructure/sqlite";

/** The schema that a connection's file is attached as. */
export const SCHEMA = "store";

const SQLITE_ERROR = 1;
const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

/** Page cache; SQLite's default of 2,000 KiB is smaller than the index of 10,000 short documents. */
const CACHE_KIB = 16_000;

export type Parameter = string | number | null | Uint8Array;

/** A prepared statement. Rows are arrays, which cost less than objects. */
export interface Statement<Parameters extends Parameter[], Row extends unknown[] = never> {
  run(...parameters: Parameters): unknown;
  get(...parameters: Parameters): Row | undefined;
  all(...parameters: Parameters): Row[];
}

/**
 * A connection to the database at `file`, which is created if it does not exist.
 *
 * The file is attached to an empty database in memory, because detaching closes it at once. The library
 * cannot finalize statements: a closed connection holds its file until they are garbage-collected, and
 * then removes the WAL by name, which by then may belong to another connection.
 */
export class Connection {
  // No timeout: waiting for a lock would block every request. The lock file decides who owns the index.
  readonly #database = new DatabaseSync(":memory:", { timeout: 0, returnArrays: true });

  constructor(file: string) {
    // SQLite parses a name that begins with `file:` as a URI; an absolute path begins with a slash.
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

  /** The first value that a pragma of the file returns. */
  pragma(name: string): unknown {
    return this.prepare<[], unknown[]>(`PRAGMA ${SCHEMA}.${name}`).get()?.[0];
  }

  /** Run `work` in a transaction, which is rolled back if it throws. */
  transaction(work: () => void): void {
    this.exec("BEGIN IMMEDIATE");
    try {
      work();
      this.exec("COMMIT");
    } catch (error) {
      // Some errors, such as a full disk, have already ended the transaction.
      if (this.#database.isTransaction) this.exec("ROLLBACK");
      throw error;
    }
  }
}

/** A text for `CAST(? AS TEXT)`. The library truncates strings at their first NUL, but not bytes. */
export function toParameter(text: string): string | Uint8Array {
  return text.includes("\0") ? Buffer.from(text) : text;
}

/** The text of `CAST(… AS BLOB)`; the library truncates strings that it reads at their first NUL. */
export function toText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}

/** Whether SQLite reported the error. */
export function isSqliteError(error: unknown): error is Error & { errcode?: number } {
  return error instanceof Error && "code" in error && error.code === "ERR_SQLITE_ERROR";
}

/** Whether another connection has locked the file. */
export function isBusy(error: unknown): boolean {
  return resultCode(error) === SQLITE_BUSY;
}

/** Whether the file is not a database, has a format that SQLite rejects, or has corrupt pages. */
export function isDamage(error: unknown): boolean {
  const code = resultCode(error);
  return code === SQLITE_ERROR || code === SQLITE_CORRUPT || code === SQLITE_NOTADB;
}

/** The primary result code, without the extended bits. */
function resultCode(error: unknown): number | undefined {
  if (!isSqliteError(error)) return undefined;
  if (error.errcode !== undefined) return error.errcode & 0xff;
  // The library's `all` reports the message alone.
  return error.message === "database disk image is malformed" ? SQLITE_CORRUPT : undefined;
}
