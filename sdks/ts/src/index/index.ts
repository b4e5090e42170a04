/**
 * The search index of one brain, in memory: postings for terms, a matrix for vectors. A log keeps what it
 * was made from. Both are a cache of the files.
 */

import { setImmediate as nextTurn } from "node:timers/promises";

import { Problem } from "../problem.js";
import { cutoffScore, type Hit, inverseL2, type Kernel, roundScore } from "../rank/rank.js";
import { compareUtf8 } from "../text/order.js";
import { queryTerms } from "../text/terms.js";
import { parseExactly, stringifyExactly } from "../wire/exactJson.js";
import type { DocumentFilter } from "./filter.js";
import { type DocumentRecord, Log, type LogRecord } from "./log.js";
import { VectorMatrix } from "./matrix.js";
import { FREE, Postings } from "./postings.js";

/** How long the log is read before other requests get their turn. */
const TURN_MS = 10;

/** Slots that are free, and records that are old, are dropped if they are most of all, and at least so many. */
export const LEAST_WASTE = 1024;

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

interface StoredDocument extends Omit<DocumentRecord, "vectors"> {
  /** The slot of the first chunk; the others follow. */
  firstSlot: number;
}

/** All calls are synchronous, so no other request sees a partial change. */
export class Index {
  readonly #log: Log | undefined;
  readonly #documents = new Map<string, StoredDocument>();
  /**
   * The document of the chunk in each slot, undefined if it is gone. A slot is a small integer: the
   * chunk's position in the postings and in the matrix.
   */
  #slots: (StoredDocument | undefined)[] = [];
  #chunks = 0;
  readonly #postings = new Postings();
  readonly #matrix = new VectorMatrix();

  /**
   * Open the index with the log `file`, while other requests are served; without a file, one that is
   * in memory alone. It lacks what the log lacks or has damaged. `signal` ends it, and is what it
   * throws then.
   */
  static async open(
    file: string | undefined,
    embedder: string,
    signal?: AbortSignal,
  ): Promise<Index> {
    const index = new Index(file === undefined ? undefined : new Log(file, embedder));
    try {
      await index.#replay(signal);
    } catch (error) {
      index.close();
      throw error;
    }
    return index;
  }

  private constructor(log: Log | undefined) {
    this.#log = log;
  }

  close(): void {
    this.#log?.close();
  }

  /** The stamp of each indexed document, by path. */
  stamps(): Map<string, string> {
    return new Map(Array.from(this.#documents.values(), ({ path, stamp }) => [path, stamp]));
  }

  counts(): Counts {
    return {
      documents: this.#documents.size,
      chunks: this.#chunks,
      vectors: this.#matrix.dimensions === undefined ? 0 : this.#chunks,
    };
  }

  /**
   * Add `documents`, replacing those of the same path, and remove the paths `removed`: all or nothing.
   *
   * @throws Problem `bad_gateway` if the embedder's vectors have other dimensions than before; the file
   *   system's error if the log cannot be written.
   */
  apply(documents: readonly IndexedDocument[], removed: Iterable<string> = []): void {
    this.#requireDimensions(documents.flatMap(({ vectors }) => vectors));
    const records: LogRecord[] = [
      ...Array.from(removed, (path) => ({ path })),
      ...documents.map(recordOf),
    ];
    this.#log?.append(records);
    for (const record of records) this.#take(record);
    this.#tidy();
  }

  /** The best `limit` chunks by bm25, with the statistics of the whole brain. */
  keyword(query: string, allows: DocumentFilter | undefined, limit: number): Hit[] {
    const textOf = (slot: number) => {
      const document = this.#slots[slot];
      return document?.chunks[slot - document.firstSlot];
    };
    const all = this.#postings.scores(queryTerms(query), this.#chunks, textOf);
    const slots = this.#slotsOf(allows, all);
    const scores = new Float64Array(slots.length);
    slots.forEach((slot, place) => (scores[place] = roundScore(all[slot] ?? 0)));
    return this.#best(slots, scores, limit);
  }

  /** The best `limit` chunks by `kernel`, an exact search over all chunks that the filter allows. */
  semantic(
    query: Float32Array,
    allows: DocumentFilter | undefined,
    limit: number,
    kernel: Kernel,
  ): Hit[] {
    this.#requireDimensions([query]);
    const slots = this.#slotsOf(allows);
    const cosines = this.#matrix.dots(query, slots).map(roundScore);
    return this.#best(slots, kernel === "cosine" ? cosines : cosines.map(inverseL2), limit);
  }

  /** The ranking order: best score, then path by its UTF-8 bytes, then ordinal. */
  readonly compare = (a: Hit, b: Hit): number => {
    if (a.score !== b.score) return b.score - a.score;
    // The slots of a document are in the order of its chunks.
    return compareUtf8(this.#at(a.slot).path, this.#at(b.slot).path) || a.slot - b.slot;
  };

  /** @throws RangeError if the slot is free. */
  chunk(slot: number): StoredChunk {
    const { path, firstSlot, chunks, title, metadata } = this.#at(slot);
    const ordinal = slot - firstSlot;
    return {
      path,
      ordinal,
      text: chunks[ordinal] ?? "",
      title,
      metadata: parseExactly(metadata) as Record<string, unknown>,
    };
  }

  #at(slot: number): StoredDocument {
    const document = this.#slots[slot];
    if (document === undefined) throw new RangeError(`slot ${slot} holds no chunk`);
    return document;
  }

  /** The slots of the chunks that a filter allows, in ascending order; with `scores`, of those with one. */
  #slotsOf(allows: DocumentFilter | undefined, scores?: Float64Array): number[] {
    const slots: number[] = [];
    const documents = this.#slots;
    for (let slot = 0; slot < documents.length; slot++) {
      if (scores?.[slot] === 0) continue;
      const document = documents[slot];
      if (document !== undefined && (allows === undefined || allows(document))) slots.push(slot);
    }
    return slots;
  }

  #best(slots: readonly number[], scores: Float64Array, limit: number): Hit[] {
    const cutoff = cutoffScore(scores, limit);
    // No object per slot: creating 100,000 of them took longer than the dot products.
    const hits: Hit[] = [];
    scores.forEach((score, place) => {
      const slot = slots[place];
      if (score >= cutoff && slot !== undefined) hits.push({ slot, score });
    });
    return hits.sort(this.compare).slice(0, limit);
  }

  async #replay(signal: AbortSignal | undefined): Promise<void> {
    let started = performance.now();
    for (const record of this.#log?.records() ?? []) {
      // Where damage lost the removal of other vectors, it is indexed again.
      if (this.#misfit(record.vectors) === undefined) this.#take(record);
      if (performance.now() - started < TURN_MS) continue;
      await nextTurn();
      signal?.throwIfAborted();
      started = performance.now();
    }
    this.#tidy();
  }

  #requireDimensions(vectors: readonly Float32Array[]): void {
    const other = this.#misfit(vectors);
    if (other === undefined) return;
    const expected = this.#matrix.dimensions ?? vectors[0]?.length;
    throw new Problem(
      "bad_gateway",
      `the embedder returned ${other.length} dimensions, but the index has ${expected}`,
    );
  }

  /** A vector whose dimensions are not those of the others. */
  #misfit(vectors: readonly Float32Array[] = []): Float32Array | undefined {
    const expected = this.#matrix.dimensions ?? vectors[0]?.length;
    return vectors.find(({ length }) => length !== expected);
  }

  /** Change what is in memory, which cannot fail. */
  #take(record: LogRecord): void {
    const old = this.#documents.get(record.path);
    if (old !== undefined) this.#drop(old);
    if (record.chunks === undefined) return;
    const { path, stamp, title, tags, sessionId, metadata, chunks, vectors } = record;
    const firstSlot = this.#slots.length;
    // With all keys, in one order: objects of one shape are read faster.
    const document = { path, stamp, title, tags, sessionId, metadata, chunks, firstSlot };
    this.#documents.set(document.path, document);
    this.#chunks += document.chunks.length;
    for (const [ordinal, text] of document.chunks.entries()) {
      const slot = this.#slots.push(document) - 1;
      this.#postings.add(text);
      const vector = vectors[ordinal];
      if (vector !== undefined) this.#matrix.put(slot, vector);
    }
  }

  #drop({ path, firstSlot, chunks }: StoredDocument): void {
    for (const [ordinal, text] of chunks.entries()) {
      this.#postings.remove(firstSlot + ordinal, text);
      this.#slots[firstSlot + ordinal] = undefined;
    }
    this.#documents.delete(path);
    this.#chunks -= chunks.length;
    // The next vectors may have other dimensions.
    if (this.#chunks === 0) this.#compact();
  }

  /** Drop what is no longer used, from memory and from the log, once it is most of them. */
  #tidy(): void {
    if (this.#slots.length > 2 * this.#chunks + LEAST_WASTE) this.#compact();
    if (this.#log && this.#log.length > 2 * this.#documents.size + LEAST_WASTE) {
      try {
        this.#log.rewrite(this.#records());
      } catch {
        // A full disk must not fail a change that the log has: it stays as it is.
      }
    }
  }

  /** Renumber the slots without those that are free. */
  #compact(): void {
    const numbers = new Uint32Array(this.#slots.length).fill(FREE);
    let count = 0;
    this.#slots.forEach((document, slot) => {
      if (document === undefined) return;
      if (this.#matrix.dimensions !== undefined) this.#matrix.put(count, this.#matrix.at(slot));
      numbers[slot] = count++;
    });
    this.#matrix.cut(count);
    this.#postings.renumber(numbers);
    for (const document of this.#documents.values()) {
      document.firstSlot = numbers[document.firstSlot] ?? 0;
    }
    this.#slots = this.#slots.filter((document) => document !== undefined);
  }

  *#records(): Generator<DocumentRecord> {
    for (const { firstSlot, ...document } of this.#documents.values()) {
      const slots = document.chunks.map((_, ordinal) => firstSlot + ordinal);
      const hasVectors = this.#matrix.dimensions !== undefined;
      yield { ...document, vectors: hasVectors ? slots.map((slot) => this.#matrix.at(slot)) : [] };
    }
  }
}

function recordOf(document: IndexedDocument): DocumentRecord {
  const { path, stamp, title, tags, metadata, chunks, vectors } = document;
  return {
    path,
    stamp,
    title,
    tags,
    sessionId: typeof metadata.session_id === "string" ? metadata.session_id : undefined,
    metadata: stringifyExactly(metadata),
    chunks,
    vectors,
  };
}
