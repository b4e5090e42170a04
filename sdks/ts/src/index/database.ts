/** The SQLite file of an index: opened, or made anew where it cannot serve. */

import { rmSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

import { Connection, isDamage, isSqliteError, SCHEMA } from "./sqlite.js";

/** Raised by one when tables change: an index of another format is built anew from the files. */
const FORMAT = 1;

const TABLES = `
CREATE TABLE ${SCHEMA}.settings (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE ${SCHEMA}.documents (
  path TEXT PRIMARY KEY,
  stamp TEXT NOT NULL,        -- sizes and times of the files that the row was made from
  title TEXT,
  session_id TEXT,
  tags TEXT NOT NULL,         -- JSON array
  metadata TEXT NOT NULL      -- JSON object
) WITHOUT ROWID;

CREATE TABLE ${SCHEMA}.chunks (
  id INTEGER PRIMARY KEY,     -- slot + 1, the rowid in chunk_terms
  path TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  text TEXT NOT NULL,
  vector BLOB
);
CREATE UNIQUE INDEX ${SCHEMA}.chunks_by_path ON chunks (path, ordinal);

-- Contentless: the chunk's text in NFKC, which chunks.text gives again when a row is deleted.
CREATE VIRTUAL TABLE ${SCHEMA}.chunk_terms USING fts5 (
  text,
  content = '',
  tokenize = 'porter unicode61'
);
`;

/** The database at `file`, empty if it was damaged, altered, or made otherwise than for `embedder`. */
export function openDatabase(file: string, embedder: string): Connection {
  if (file === ":memory:") return created(file, embedder);
  const held = reopened(file, embedder);
  if (held !== undefined) return held;
  removeDatabase(file);
  return created(file, embedder);
}

export function removeDatabase(file: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
}

/** Whether an index that fails so can be mended by making it anew: SQLite has no other trouble. */
export function isFaultOfContent(error: unknown): boolean {
  return isDamage(error) || !isSqliteError(error);
}

function reopened(file: string, embedder: string): Connection | undefined {
  let database: Connection | undefined;
  try {
    database = new Connection(file);
    if (isSound(database) && isWhole(database) && isMadeFor(database, embedder)) {
      return configured(database);
    }
  } catch (error) {
    if (!isDamage(error)) {
      database?.close();
      throw error;
    }
  }
  database?.close();
  return undefined;
}

function created(file: string, embedder: string): Connection {
  const database = configured(new Connection(file));
  database.exec(TABLES);
  database.prepare<[string]>("INSERT INTO settings VALUES ('embedder', ?)").run(embedder);
  database.exec(`PRAGMA ${SCHEMA}.user_version = ${FORMAT}`);
  return database;
}

function configured(database: Connection): Connection {
  // An acknowledged write must outlive the process, not the machine, so nothing is fsynced.
  database.exec(`PRAGMA ${SCHEMA}.journal_mode = WAL`);
  database.exec(`PRAGMA ${SCHEMA}.synchronous = OFF`);
  return database;
}

function isSound(database: Connection): boolean {
  return database.pragma("quick_check(1)") === "ok";
}

/** Whether its tables are those of this format, and no others. */
function isWhole(database: Connection): boolean {
  const pattern = new Connection(":memory:");
  pattern.exec(TABLES);
  const same = isDeepStrictEqual(schemaOf(database), schemaOf(pattern));
  pattern.close();
  return same;
}

function schemaOf(database: Connection): unknown[] {
  return database
    .prepare<[], unknown[]>(`SELECT name, sql FROM ${SCHEMA}.sqlite_schema ORDER BY name`)
    .all();
}

function isMadeFor(database: Connection, embedder: string): boolean {
  if (database.pragma("user_version") !== FORMAT) return false;
  const setting = "SELECT value FROM settings WHERE key = 'embedder'";
  return database.prepare<[], [value: string]>(setting).get()?.[0] === embedder;
}
