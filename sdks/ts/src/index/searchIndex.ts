/** The search index of one brain: SQLite FTS5 for terms, a matrix for vectors. */

import { Problem } from "../problem.js";
import { type Hit, rounded } from "../ranking/fusion.js";
import { lastPlace } from "../ranking/lastPlace.js";
import { compareUtf8 } from "../text/order.js";
import { nfkc, queryTerms } from "../text/terms.js";
import { isFaultOfContent, openDatabase, removeDatabase } from "./database.js";
import { type Filterable, Slots } from "./slots.js";
import { type Connection, toParameter, toText } from "./sqlite.js";
import { Statements } from "./statements.js";
import { VectorMatrix } from "./vectorMatrix.js";

/** A document as it enters the index. */
export interface IndexedDocument {
  path: string;
  stamp: string;
  title: string | undefined;
  tags: string[];
  metadata: Record<string, unknown>;
  chunks: string[];
  /** One a chunk, or none where there is no embedder. */
  vectors: Float32Array[];
}

export interface StoredChunk {
  path: string;
  ordinal: number;
  text: string;
  title: string | undefined;
  metadata: Record<string, unknown>;
}

export interface Counts {
  documents: number;
  chunks: number;
  vectors: number;
}

/** Which documents may be found. */
export type Allows = (document: Filterable) => boolean;

/** All calls are synchronous: what one of them does is never seen half done. */
export class SearchIndex {
  readonly #database: Connection;
  readonly #statements: Statements;
  readonly #slots = new Slots();
  readonly #matrix = new VectorMatrix();

  /** `:memory:` as `file` makes an index that nobody shares. */
  static open(file: string, embedder: string): SearchIndex {
    try {
      return new SearchIndex(openDatabase(file, embedder));
    } catch (error) {
      // Somebody altered its rows: they are sound, and do not fit together.
      if (file === ":memory:" || !isFaultOfContent(error)) throw error;
      removeDatabase(file);
      return new SearchIndex(openDatabase(file, embedder));
    }
  }

  private constructor(database: Connection) {
    this.#database = database;
    try {
      this.#statements = new Statements(database);
      this.#load();
    } catch (error) {
      database.close();
      throw error;
    }
  }

  close(): void {
    this.#database.close();
  }

  /** The stamp under which each document was indexed, by path. */
  stamps(): Map<string, string> {
    return new Map(this.#statements.stamps.all());
  }

  counts(): Counts {
    const row = this.#statements.counts.get();
    if (row === undefined) throw new Error("an aggregate without a row");
    const [documents, chunks, vectors] = row;
    return { documents, chunks, vectors };
  }

  /**
   * Takes `documents` in, replacing those of the same path, and takes `removed` paths out.
   *
   * @throws Problem `bad_gateway` where the embedder gave other dimensions than before.
   */
  apply(documents: readonly IndexedDocument[], removed: Iterable<string> = []): void {
    this.#refuseOtherDimensions(documents.flatMap(({ vectors }) => vectors));
    try {
      this.#database.transaction(() => {
        for (const path of removed) this.#remove(path);
        for (const document of documents) {
          this.#remove(document.path);
          this.#insert(document);
        }
      });
    } catch (error) {
      this.#load();
      throw error;
    }
    if (this.#slots.used === 0) this.#matrix.clear();
  }

  /** The best `limit` chunks by bm25; its statistics are the whole brain's. */
  keyword(query: string, allows: Allows, limit: number): Hit[] {
    const expression = queryTerms(query)
      .map((term) => `"${term}"`)
      .join(" OR ");
    if (expression === "") return [];
    const hits: Hit[] = [];
    for (const [id, score] of this.#statements.matches.all(expression)) {
      const slot = id - 1;
      if (allows(this.#slots.at(slot).document)) hits.push({ slot, score: rounded(score) });
    }
    return this.#best(hits, limit);
  }

  /** The best `limit` chunks by cosine; every chunk that the filters allow is ranked. */
  semantic(query: Float32Array, allows: Allows, limit: number): Hit[] {
    this.#refuseOtherDimensions([query]);
    const slots: number[] = [];
    this.#slots.forEach((slot, { document }) => {
      if (allows(document)) slots.push(slot);
    });
    const scores = this.#matrix.dots(query, slots).map(rounded);
    const least = lastPlace(scores, limit);
    // No object a slot: 100,000 of them took longer than the sums.
    const hits: Hit[] = [];
    scores.forEach((score, place) => {
      const slot = slots[place];
      if (score >= least && slot !== undefined) hits.push({ slot, score });
    });
    return this.#best(hits, limit);
  }

  /** The ranking order: best score, then path by its UTF-8 bytes, then ordinal. */
  readonly compare = (a: Hit, b: Hit): number => {
    if (a.score !== b.score) return b.score - a.score;
    const left = this.#slots.at(a.slot);
    const right = this.#slots.at(b.slot);
    return compareUtf8(left.document.path, right.document.path) || left.ordinal - right.ordinal;
  };

  chunk(slot: number): StoredChunk {
    const row = this.#statements.chunk.get(slot + 1);
    if (row === undefined) throw new RangeError(`slot ${slot} holds no chunk`);
    const [path, ordinal, text, title, metadata] = row;
    return {
      path,
      ordinal,
      text: toText(text),
      title: title === null ? undefined : toText(title),
      metadata: JSON.parse(metadata) as Record<string, unknown>,
    };
  }

  #best(hits: Hit[], limit: number): Hit[] {
    const least = lastPlace(
      Float64Array.from(hits, (hit) => hit.score),
      limit,
    );
    const contenders = hits.filter((hit) => hit.score >= least);
    return contenders.sort(this.compare).slice(0, limit);
  }

  #refuseOtherDimensions(vectors: Float32Array[]): void {
    const expected = this.#matrix.dimensions ?? vectors[0]?.length;
    const other = vectors.find(({ length }) => length !== expected);
    if (other !== undefined) {
      throw new Problem(
        "bad_gateway",
        `the embedder gave ${other.length} dimensions where ${expected} are held`,
      );
    }
  }

  #load(): void {
    this.#slots.clear();
    this.#matrix.clear();
    const documents = new Map<string, Filterable>();
    for (const [path, session, tags] of this.#statements.filterables.iterate()) {
      const sessionId = session === null ? undefined : toText(session);
      documents.set(path, { path, sessionId, tags: JSON.parse(tags) as string[] });
    }
    for (const [id, path, ordinal, vector] of this.#statements.occupants.iterate()) {
      const document = documents.get(path);
      if (document === undefined) throw new Error(`chunk ${id} belongs to no document`);
      this.#slots.restore(id - 1, { document, ordinal });
      if (vector === null) continue;
      const values = fromBlob(vector);
      this.#refuseOtherDimensions([values]);
      this.#matrix.put(id - 1, values);
    }
  }

  #remove(path: string): void {
    for (const [id, bytes] of this.#statements.textsOf.all(path)) {
      this.#statements.removeTerms.run(id, toParameter(nfkc(toText(bytes))));
      this.#slots.release(id - 1);
    }
    this.#statements.removeChunks.run(path);
    this.#statements.removeDocument.run(path);
  }

  #insert(document: IndexedDocument): void {
    const { path, stamp, title, tags, metadata } = document;
    const sessionId = typeof metadata.session_id === "string" ? metadata.session_id : undefined;
    this.#statements.addDocument.run(
      path,
      stamp,
      title === undefined ? null : toParameter(title),
      sessionId === undefined ? null : toParameter(sessionId),
      JSON.stringify(tags),
      JSON.stringify(metadata),
    );
    const filterable: Filterable = { path, sessionId, tags };
    for (const [ordinal, text] of document.chunks.entries()) {
      const slot = this.#slots.take({ document: filterable, ordinal });
      const vector = document.vectors[ordinal];
      if (vector !== undefined) this.#matrix.put(slot, vector);
      const blob = vector === undefined ? null : toBlob(vector);
      this.#statements.addChunk.run(slot + 1, path, ordinal, toParameter(text), blob);
      this.#statements.addTerms.run(slot + 1, toParameter(nfkc(text)));
    }
  }
}

function toBlob(vector: Float32Array): Uint8Array {
  return new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
}

/** Copied, for a blob may lie where no float32 may. */
function fromBlob(blob: Uint8Array): Float32Array {
  return new Float32Array(Uint8Array.from(blob).buffer);
}
