/** Opening the SQLite file of an index, and rebuilding it if it is unusable. */

import { rmSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

import { Connection, isDamage, isSqliteError, SCHEMA } from "./sqlite.js";

/** Incremented when the tables change: an index of another format is rebuilt from the files. */
const FORMAT = 2;

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
  metadata TEXT NOT NULL,     -- JSON object
  checksum TEXT NOT NULL      -- of the columns above, and of the texts and vectors of its chunks
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

/** Open the database at `file`; emptied if it is damaged, altered, or of another format or embedder. */
export function openDatabase(file: string, embedder: string): Connection {
  if (file === ":memory:") return createDatabase(file, embedder);
  const existing = reopenDatabase(file, embedder);
  if (existing !== undefined) return existing;
  removeDatabase(file);
  return createDatabase(file, embedder);
}

/** Remove the database at `file` with its write-ahead log and its seal. */
export function removeDatabase(file: string): void {
  for (const suffix of ["", "-wal", "-shm", ".seal"]) rmSync(file + suffix, { force: true });
}

/** Whether rebuilding the index can fix the error: its content is at fault, not SQLite's environment. */
export function isRebuildable(error: unknown): boolean {
  return isDamage(error) || !isSqliteError(error);
}

function reopenDatabase(file: string, embedder: string): Connection | undefined {
  let database: Connection | undefined;
  try {
    database = new Connection(file);
    if (hasExpectedSchema(database) && matchesEmbedder(database, embedder)) {
      return configure(database);
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

/** Create a database for the vectors of `embedder`. */
export function createDatabase(file: string, embedder: string): Connection {
  const database = configure(new Connection(file));
  database.exec(TABLES);
  database.prepare<[string]>("INSERT INTO settings VALUES ('embedder', ?)").run(embedder);
  database.exec(`PRAGMA ${SCHEMA}.user_version = ${FORMAT}`);
  return database;
}

function configure(database: Connection): Connection {
  // An acknowledged write must survive the process, not the machine, so nothing is fsynced.
  database.exec(`PRAGMA ${SCHEMA}.journal_mode = WAL`);
  database.exec(`PRAGMA ${SCHEMA}.synchronous = OFF`);
  return database;
}

/** Whether the tables are exactly those of this format. */
function hasExpectedSchema(database: Connection): boolean {
  const reference = new Connection(":memory:");
  reference.exec(TABLES);
  const same = isDeepStrictEqual(schemaOf(database), schemaOf(reference));
  reference.close();
  return same;
}

function schemaOf(database: Connection): unknown[] {
  return database
    .prepare<[], unknown[]>(`SELECT name, sql FROM ${SCHEMA}.sqlite_schema ORDER BY name`)
    .all();
}

function matchesEmbedder(database: Connection, embedder: string): boolean {
  if (database.pragma("user_version") !== FORMAT) return false;
  const setting = "SELECT value FROM settings WHERE key = 'embedder'";
  return database.prepare<[], [value: string]>(setting).get()?.[0] === embedder;
}
