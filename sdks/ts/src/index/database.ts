/** The SQLite file of an index: opened, or made anew where it cannot serve. */

import { rmSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

import Database from "better-sqlite3";

/** Raised by one when tables change: an index of another format is built anew from the files. */
const FORMAT = 1;

const TABLES = `
CREATE TABLE settings (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE documents (
  path TEXT PRIMARY KEY,
  stamp TEXT NOT NULL,        -- sizes and times of the files that the row was made from
  title TEXT,
  session_id TEXT,
  tags TEXT NOT NULL,         -- JSON array
  metadata TEXT NOT NULL      -- JSON object
) WITHOUT ROWID;

CREATE TABLE chunks (
  id INTEGER PRIMARY KEY,     -- slot + 1, the rowid in chunk_terms
  path TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  text TEXT NOT NULL,
  vector BLOB
);
CREATE UNIQUE INDEX chunks_by_path ON chunks (path, ordinal);

-- Contentless: the chunk's text in NFKC, which chunks.text gives again when a row is deleted.
CREATE VIRTUAL TABLE chunk_terms USING fts5 (
  text,
  content = '',
  tokenize = 'porter unicode61'
);
`;

/** The database at `file`, empty if it was damaged, altered, or made otherwise than for `embedder`. */
export function openDatabase(file: string, embedder: string): Database.Database {
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
  return isDamage(error) || !(error instanceof Database.SqliteError);
}

/** Whether SQLite says that its file is no database, or one in which pages are wrong. */
export function isDamage(error: unknown): boolean {
  return error instanceof Database.SqliteError && /^SQLITE_(NOTADB|CORRUPT)/.test(error.code);
}

function reopened(file: string, embedder: string): Database.Database | undefined {
  const database = connected(file);
  try {
    if (isSound(database) && isWhole(database) && isMadeFor(database, embedder)) {
      return configured(database);
    }
  } catch (error) {
    if (!isDamage(error)) {
      database.close();
      throw error;
    }
  }
  database.close();
  return undefined;
}

function created(file: string, embedder: string): Database.Database {
  const database = configured(connected(file));
  database.exec(TABLES);
  database.prepare("INSERT INTO settings VALUES ('embedder', ?)").run(embedder);
  database.pragma(`user_version = ${FORMAT}`);
  return database;
}

/** To wait for a lock would stop every request, and whose the index is the lock file says. */
function connected(file: string): Database.Database {
  return new Database(file, { timeout: 0 });
}

function configured(database: Database.Database): Database.Database {
  // An acknowledged write must outlive the process, not the machine, so nothing is fsynced.
  database.pragma("journal_mode = WAL");
  database.pragma("synchronous = OFF");
  return database;
}

function isSound(database: Database.Database): boolean {
  return database.pragma("quick_check(1)", { simple: true }) === "ok";
}

/** Whether its tables are those of this format, and no others. */
function isWhole(database: Database.Database): boolean {
  const pattern = new Database(":memory:").exec(TABLES);
  const same = isDeepStrictEqual(schemaOf(database), schemaOf(pattern));
  pattern.close();
  return same;
}

function schemaOf(database: Database.Database): unknown[] {
  return database.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").all();
}

function isMadeFor(database: Database.Database, embedder: string): boolean {
  if (database.pragma("user_version", { simple: true }) !== FORMAT) return false;
  const setting = database.prepare("SELECT value FROM settings WHERE key = 'embedder'").pluck();
  return setting.get() === embedder;
}
