/** The search index of one brain: SQLite FTS5 for terms, an in-memory matrix for vectors. */

import { setImmediate as nextTurn } from "node:timers/promises";

import { Problem } from "../problem.js";
import { cutoffScore, type Hit, inverseL2, type Kernel, roundScore } from "../rank/rank.js";
import { compareUtf8 } from "../text/order.js";
import { nfkc, queryTerms } from "../text/terms.js";
import { parseExactly, stringifyExactly } from "../wire/exactJson.js";
import { isRebuildable, openDatabase, removeDatabase } from "./file.js";
import { VectorMatrix } from "./matrix.js";
import { checksumOf, salvage } from "./salvage.js";
import { breakSeal, seal, type YieldTurn } from "./seal.js";
import { type Filterable, Slots } from "./slots.js";
import { type Connection, toParameter, toText } from "./sqlite.js";
import { Statements } from "./statements.js";

/** How many rows are loaded before other requests get their turn: some 10 ms. */
const LOADED_AT_ONCE = 1_000;

/** A document to index. */
export interface IndexedDocument {
  path: string;
  stamp: string;
  title: string | undefined;
  tags: string[];
  metadata: Record<string, unknown>;
  chunks: string[];
  /** One per chunk; none without an embedder. */
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

/** Whether a search may return a document. */
export type DocumentFilter = (document: Filterable) => boolean;

/** All calls are synchronous, so no other request sees a partial change. */
export class Index {
  readonly #file: string;
  readonly #embedder: string;
  readonly #database: Connection;
  readonly #statements: Statements;
  readonly #slots = new Slots();
  readonly #matrix = new VectorMatrix();

  /**
   * Open or rebuild the index at `file`, while other requests are served; `:memory:` is an unshared index
   * in memory. `signal` ends it, and is what it throws then.
   */
  static async open(file: string, embedder: string, signal?: AbortSignal): Promise<Index> {
    const yieldTurn: YieldTurn = async () => {
      await nextTurn();
      signal?.throwIfAborted();
    };
    if (file === ":memory:") return new Index(file, embedder);
    try {
      if (!(await breakSeal(file, yieldTurn))) await salvage(file, embedder, yieldTurn);
      return await Index.#loaded(file, embedder, yieldTurn);
    } catch (error) {
      signal?.throwIfAborted();
      // Somebody altered its rows: each is valid SQLite, but they contradict each other.
      if (!isRebuildable(error)) throw error;
      removeDatabase(file);
      return new Index(file, embedder);
    }
  }

  static async #loaded(file: string, embedder: string, yieldTurn: YieldTurn): Promise<Index> {
    const index = new Index(file, embedder);
    try {
      const loading = index.#loading();
      while (!loading.next().done) await yieldTurn();
      return index;
    } catch (error) {
      index.#database.close();
      throw error;
    }
  }

  private constructor(file: string, embedder: string) {
    this.#file = file;
    this.#embedder = embedder;
    this.#database = openDatabase(file, embedder);
    try {
      this.#statements = new Statements(this.#database);
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  close(): void {
    this.#database.close();
    if (this.#file !== ":memory:") seal(this.#file);
  }

  /** The stamp of each indexed document, by path. */
  stamps(): Map<string, string> {
    return new Map(this.#statements.stamps.all());
  }

  counts(): Counts {
    const row = this.#statements.counts.get();
    if (row === undefined) throw new Error("the aggregate query returned no row");
    const [documents, chunks, vectors] = row;
    return { documents, chunks, vectors };
  }

  /**
   * Add `documents`, replacing those of the same path, and remove the paths `removed`.
   *
   * @throws Problem `bad_gateway` if the embedder's vectors have other dimensions than before.
   */
  apply(documents: readonly IndexedDocument[], removed: Iterable<string> = []): void {
    this.#requireDimensions(documents.flatMap(({ vectors }) => vectors));
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

  /** The best `limit` chunks by bm25, with the statistics of the whole brain. */
  keyword(query: string, allows: DocumentFilter, limit: number): Hit[] {
    const expression = queryTerms(query)
      .map((term) => `"${term}"`)
      .join(" OR ");
    if (expression === "") return [];
    const hits: Hit[] = [];
    for (const [id, score] of this.#statements.matches.all(expression)) {
      const slot = id - 1;
      if (allows(this.#slots.at(slot).document)) hits.push({ slot, score: roundScore(score) });
    }
    return this.#best(hits, limit);
  }

  /** The best `limit` chunks by `kernel`, an exact search over all chunks that the filter allows. */
  semantic(query: Float32Array, allows: DocumentFilter, limit: number, kernel: Kernel): Hit[] {
    this.#requireDimensions([query]);
    const slots: number[] = [];
    this.#slots.forEach((slot, { document }) => {
      if (allows(document)) slots.push(slot);
    });
    const cosines = this.#matrix.dots(query, slots).map(roundScore);
    const scores = kernel === "cosine" ? cosines : cosines.map(inverseL2);
    const cutoff = cutoffScore(scores, limit);
    // No object per slot: creating 100,000 of them took longer than the dot products.
    const hits: Hit[] = [];
    scores.forEach((score, place) => {
      const slot = slots[place];
      if (score >= cutoff && slot !== undefined) hits.push({ slot, score });
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

  /** @throws RangeError if the slot is free. */
  chunk(slot: number): StoredChunk {
    const row = this.#statements.chunk.get(slot + 1);
    if (row === undefined) throw new RangeError(`slot ${slot} holds no chunk`);
    const [path, ordinal, text, title, metadata] = row;
    return {
      path,
      ordinal,
      text: toText(text),
      title: title === null ? undefined : toText(title),
      metadata: parseExactly(metadata) as Record<string, unknown>,
    };
  }

  #best(hits: Hit[], limit: number): Hit[] {
    const cutoff = cutoffScore(
      Float64Array.from(hits, (hit) => hit.score),
      limit,
    );
    const contenders = hits.filter((hit) => hit.score >= cutoff);
    return contenders.sort(this.compare).slice(0, limit);
  }

  #requireDimensions(vectors: Float32Array[]): void {
    const expected = this.#matrix.dimensions ?? vectors[0]?.length;
    const other = vectors.find(({ length }) => length !== expected);
    if (other !== undefined) {
      throw new Problem(
        "bad_gateway",
        `the embedder returned ${other.length} dimensions, but the index has ${expected}`,
      );
    }
  }

  #load(): void {
    const loading = this.#loading();
    while (!loading.next().done);
  }

  /** Load from the file what searches need in memory, in steps. */
  *#loading(): Generator<undefined> {
    this.#slots.clear();
    this.#matrix.clear();
    const documents = new Map<string, Filterable>();
    const { filterables, entries } = this.#statements;
    for (const page of pages("", (after) => filterables.all(after, LOADED_AT_ONCE))) {
      for (const [path, session, tags] of page) {
        const sessionId = session === null ? undefined : toText(session);
        documents.set(path, { path, sessionId, tags: JSON.parse(tags) as string[] });
      }
      yield;
    }
    for (const page of pages(0, (after) => entries.all(after, LOADED_AT_ONCE))) {
      for (const [id, path, ordinal, vector] of page) {
        const document = documents.get(path);
        if (document === undefined) throw new Error(`chunk ${id} belongs to no document`);
        this.#slots.restore(id - 1, { document, ordinal });
        if (vector === null) continue;
        const values = fromBlob(vector);
        this.#requireDimensions([values]);
        this.#matrix.put(id - 1, values);
      }
      yield;
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
    const tagsJson = JSON.stringify(tags);
    const metadataJson = stringifyExactly(metadata);
    const contents = document.chunks.map((text, ordinal) => {
      const vector = document.vectors[ordinal];
      return [text, vector === undefined ? null : toBlob(vector)] as const;
    });
    this.#statements.addDocument.run(
      path,
      stamp,
      title === undefined ? null : toParameter(title),
      sessionId === undefined ? null : toParameter(sessionId),
      tagsJson,
      metadataJson,
      checksumOf(
        this.#embedder,
        [path, stamp, title ?? null, sessionId ?? null, tagsJson, metadataJson],
        contents,
      ),
    );
    const filterable: Filterable = { path, sessionId, tags };
    for (const [ordinal, [text, blob]] of contents.entries()) {
      const slot = this.#slots.take({ document: filterable, ordinal });
      const vector = document.vectors[ordinal];
      if (vector !== undefined) this.#matrix.put(slot, vector);
      this.#statements.addChunk.run(slot + 1, path, ordinal, toParameter(text), blob);
      this.#statements.addTerms.run(slot + 1, toParameter(nfkc(text)));
    }
  }
}

/**
 * The rows of a table, page by page; `read` returns those whose key, the first column, comes after another.
 * The library's `iterate` crashes the process if its statement is collected meanwhile.
 */
function* pages<Key, Row extends [Key, ...unknown[]]>(
  first: Key,
  read: (after: Key) => Row[],
): Generator<Row[]> {
  for (let page = read(first); ;) {
    const last = page.at(-1);
    if (last === undefined) return;
    yield page;
    page = read(last[0]);
  }
}

function toBlob(vector: Float32Array): Uint8Array {
  return new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
}

/** Copied, because a blob may not be aligned for float32. */
function fromBlob(blob: Uint8Array): Float32Array {
  return new Float32Array(Uint8Array.from(blob).buffer);
}
