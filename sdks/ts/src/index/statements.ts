import type { Database, Statement } from "better-sqlite3";

/** Everything that an index says to SQLite, prepared once. */
export class Statements {
  readonly stamps: Statement<[], [path: string, stamp: string]>;
  readonly counts: Statement<[], { documents: number; chunks: number; vectors: number }>;
  readonly filterables: Statement<[], { path: string; session_id: string | null; tags: string }>;
  readonly occupants: Statement<
    [],
    { id: number; path: string; ordinal: number; vector: Buffer | null }
  >;
  readonly matches: Statement<[expression: string], [id: number, score: number]>;
  readonly chunk: Statement<
    [id: number],
    { path: string; ordinal: number; text: string; title: string | null; metadata: string }
  >;
  readonly textsOf: Statement<[path: string], { id: number; text: string }>;
  readonly addDocument: Statement<
    [
      path: string,
      stamp: string,
      title: string | null,
      sessionId: string | null,
      tags: string,
      metadata: string,
    ]
  >;
  readonly addChunk: Statement<
    [id: number, path: string, ordinal: number, text: string, vector: Buffer | null]
  >;
  readonly addTerms: Statement<[id: number, text: string]>;
  readonly removeDocument: Statement<[path: string]>;
  readonly removeChunks: Statement<[path: string]>;
  readonly removeTerms: Statement<[id: number, text: string]>;

  constructor(database: Database) {
    this.stamps = database
      .prepare<[], [path: string, stamp: string]>("SELECT path, stamp FROM documents")
      .raw();
    this.counts = database.prepare(
      "SELECT (SELECT count(*) FROM documents) AS documents, count(*) AS chunks," +
        " count(vector) AS vectors FROM chunks",
    );
    this.filterables = database.prepare("SELECT path, session_id, tags FROM documents");
    this.occupants = database.prepare("SELECT id, path, ordinal, vector FROM chunks ORDER BY id");
    this.matches = database
      .prepare<[expression: string], [id: number, score: number]>(
        "SELECT rowid, -bm25(chunk_terms) FROM chunk_terms WHERE chunk_terms MATCH ?",
      )
      .raw();
    this.chunk = database.prepare(
      "SELECT path, ordinal, text, title, metadata FROM chunks JOIN documents USING (path)" +
        " WHERE id = ?",
    );
    this.textsOf = database.prepare("SELECT id, text FROM chunks WHERE path = ?");
    this.addDocument = database.prepare("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?)");
    this.addChunk = database.prepare("INSERT INTO chunks VALUES (?, ?, ?, ?, ?)");
    this.addTerms = database.prepare("INSERT INTO chunk_terms (rowid, text) VALUES (?, ?)");
    this.removeDocument = database.prepare("DELETE FROM documents WHERE path = ?");
    this.removeChunks = database.prepare("DELETE FROM chunks WHERE path = ?");
    this.removeTerms = database.prepare(
      "INSERT INTO chunk_terms (chunk_terms, rowid, text) VALUES ('delete', ?, ?)",
    );
  }
}
