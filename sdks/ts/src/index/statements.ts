import type { Connection, Statement } from "./sqlite.js";

/** A text that may contain NUL, made by `toParameter`. */
type Text = string | Uint8Array;

/** The statements of an index, prepared once. Texts are read as bytes, for `toText`. */
export class Statements {
  readonly stamps: Statement<[], [path: string, stamp: string]>;
  readonly counts: Statement<[], [documents: number, chunks: number, vectors: number]>;
  readonly filterables: Statement<
    [after: string, limit: number],
    [path: string, sessionId: Uint8Array | null, tags: string]
  >;
  readonly entries: Statement<
    [after: number, limit: number],
    [id: number, path: string, ordinal: number, vector: Uint8Array | null]
  >;
  readonly matches: Statement<[expression: string], [id: number, score: number]>;
  readonly chunk: Statement<
    [id: number],
    [path: string, ordinal: number, text: Uint8Array, title: Uint8Array | null, metadata: string]
  >;
  readonly textsOf: Statement<[path: string], [id: number, text: Uint8Array]>;
  readonly addDocument: Statement<
    [
      path: string,
      stamp: string,
      title: Text | null,
      sessionId: Text | null,
      tags: string,
      metadata: string,
      checksum: string,
    ]
  >;
  readonly addChunk: Statement<
    [id: number, path: string, ordinal: number, text: Text, vector: Uint8Array | null]
  >;
  readonly addTerms: Statement<[id: number, text: Text]>;
  readonly removeDocument: Statement<[path: string]>;
  readonly removeChunks: Statement<[path: string]>;
  readonly removeTerms: Statement<[id: number, text: Text]>;

  constructor(database: Connection) {
    this.stamps = database.prepare("SELECT path, stamp FROM documents");
    this.counts = database.prepare(
      "SELECT (SELECT count(*) FROM documents), count(*), count(vector) FROM chunks",
    );
    this.filterables = database.prepare(
      "SELECT path, CAST(session_id AS BLOB), tags FROM documents WHERE path > ?" +
        " ORDER BY path LIMIT ?",
    );
    this.entries = database.prepare(
      "SELECT id, path, ordinal, vector FROM chunks WHERE id > ? ORDER BY id LIMIT ?",
    );
    this.matches = database.prepare(
      "SELECT rowid, -bm25(chunk_terms) FROM chunk_terms WHERE chunk_terms MATCH ?",
    );
    this.chunk = database.prepare(
      "SELECT path, ordinal, CAST(text AS BLOB), CAST(title AS BLOB), metadata FROM chunks" +
        " JOIN documents USING (path) WHERE id = ?",
    );
    this.textsOf = database.prepare("SELECT id, CAST(text AS BLOB) FROM chunks WHERE path = ?");
    this.addDocument = database.prepare(
      "INSERT INTO documents VALUES (?, ?, CAST(? AS TEXT), CAST(? AS TEXT), ?, ?, ?)",
    );
    this.addChunk = database.prepare("INSERT INTO chunks VALUES (?, ?, ?, CAST(? AS TEXT), ?)");
    this.addTerms = database.prepare(
      "INSERT INTO chunk_terms (rowid, text) VALUES (?, CAST(? AS TEXT))",
    );
    this.removeDocument = database.prepare("DELETE FROM documents WHERE path = ?");
    this.removeChunks = database.prepare("DELETE FROM chunks WHERE path = ?");
    this.removeTerms = database.prepare(
      "INSERT INTO chunk_terms (chunk_terms, rowid, text) VALUES ('delete', ?, CAST(? AS TEXT))",
    );
  }
}
