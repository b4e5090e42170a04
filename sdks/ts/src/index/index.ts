/**
 * The search index of one brain, in memory: postings for terms, a matrix for vectors. A log keeps what it
 * was made from. Both are a cache of the files.
 */

import type { Logger } from "pino";

import { queryTerms } from "../text/terms.js";
import { stringifyExactly } from "../wire/exactJson.js";
import { Conversations, turnOf } from "./conversations.js";
import type { DocumentFilter } from "./filter.js";
import { type DocumentRecord, Log, type LogRecord } from "./log.js";
import { VectorMatrix } from "./matrix.js";
import { Pace } from "./pace.js";
import { FREE, Postings } from "./postings.js";
import { Search } from "./search.js";
import type { Slots, StoredDocument } from "./slots.js";

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

export interface Counts {
  documents: number;
  chunks: number;
  vectors: number;
}

/** Changes are synchronous, so no other request sees a part of one. A search sees those before it. */
export class Index {
  readonly #log: Log | undefined;
  readonly #logger: Logger | undefined;
  readonly #documents = new Map<string, StoredDocument>();
  /**
   * The document of the chunk in each slot, undefined if it is gone. A slot is a small integer: the
   * chunk's position in the postings and in the matrix.
   */
  #slots: (StoredDocument | undefined)[] = [];
  /** Whether a search may read the slots. */
  #isShared = false;
  #chunks = 0;
  /** How many of the chunks are turns. */
  #turns = 0;
  /** Returns the conversations, which it makes once; undefined after a change. */
  #conversations: (() => Promise<Conversations>) | undefined;
  readonly #postings = new Postings();
  #matrix = new VectorMatrix();

  /**
   * Open the index with the log `file`, while other requests are served; without a file, one that is
   * in memory alone. It lacks what the log lacks or has damaged. `signal` ends it, and is what it
   * throws then.
   */
  static async open(
    file: string | undefined,
    embedder: string,
    signal?: AbortSignal,
    logger?: Logger,
  ): Promise<Index> {
    const index = new Index(file === undefined ? undefined : new Log(file, embedder), logger);
    try {
      await index.#replay(signal);
    } catch (error) {
      index.close();
      throw error;
    }
    return index;
  }

  private constructor(log: Log | undefined, logger: Logger | undefined) {
    this.#log = log;
    this.#logger = logger;
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
    this.#matrix.requireDimensions(documents.flatMap(({ vectors }) => vectors));
    const records: LogRecord[] = [
      ...Array.from(removed, (path) => ({ path })),
      ...documents.map(recordOf),
    ];
    this.#log?.append(records);
    this.#conversations = undefined;
    for (const record of records) this.#take(record);
    this.#tidy();
  }

  /** Begin a search among the documents that the filter allows. */
  search(query: string, allows?: DocumentFilter): Search {
    this.#isShared = true;
    const slots = this.#slots;
    const textOf = (slot: number) => {
      const document = slots[slot];
      return document?.chunks[slot - document.firstSlot];
    };
    const scorer = this.#postings.scorer(queryTerms(query), this.#chunks, textOf);
    this.#conversations ??= once(slots, this.#chunks);
    const hasTurns = this.#turns > 0;
    return new Search(slots, allows, scorer, this.#matrix, hasTurns, this.#conversations);
  }

  async #replay(signal: AbortSignal | undefined): Promise<void> {
    const pace = new Pace(signal);
    for (const record of this.#log?.records() ?? []) {
      // Where damage lost the removal of other vectors, it is indexed again.
      if (this.#matrix.misfit(record.vectors ?? []) === undefined) this.#take(record);
      if (pace.isOver) await pace.rest();
    }
    this.#tidy();
  }

  /** Change what is in memory, which cannot fail. */
  #take(record: LogRecord): void {
    const old = this.#documents.get(record.path);
    if (old !== undefined) this.#drop(old);
    if (record.chunks === undefined) return;
    const { path, stamp, title, tags, sessionId, metadata, chunks, vectors } = record;
    const firstSlot = this.#slots.length;
    // With all keys, in one order: objects of one shape are read faster.
    const turn = turnOf(sessionId, metadata);
    const document = { path, stamp, title, tags, sessionId, metadata, chunks, firstSlot, turn };
    this.#documents.set(document.path, document);
    this.#chunks += document.chunks.length;
    if (turn.session !== "") this.#turns += chunks.length;
    for (const [ordinal, text] of document.chunks.entries()) {
      const slot = this.#slots.push(document) - 1;
      this.#postings.add(text);
      const vector = vectors[ordinal];
      if (vector !== undefined) this.#matrix.put(slot, vector);
    }
  }

  #drop({ path, firstSlot, chunks, turn }: StoredDocument): void {
    if (this.#isShared) this.#slots = this.#slots.slice();
    this.#isShared = false;
    for (const [ordinal, text] of chunks.entries()) {
      this.#postings.remove(firstSlot + ordinal, text);
      this.#slots[firstSlot + ordinal] = undefined;
    }
    this.#documents.delete(path);
    this.#chunks -= chunks.length;
    if (turn.session !== "") this.#turns -= chunks.length;
    // The next vectors may have other dimensions.
    if (this.#chunks === 0) this.#compact();
  }

  /** Drop what is no longer used, from memory and from the log, once it is most of them. */
  #tidy(): void {
    if (this.#slots.length > 2 * this.#chunks + LEAST_WASTE) this.#compact();
    const log = this.#log;
    if (log?.shouldRewrite(2 * this.#documents.size + LEAST_WASTE)) {
      // A copy: the index changes while the log is rewritten.
      const records = recordsOf([...this.#documents.values()], this.#matrix);
      // A full disk must not fail a change that the log has: it stays as it is.
      log.rewrite(records).catch((error: unknown) => {
        const message = "cannot rewrite the log of an index; it stays as it is";
        this.#logger?.warn({ reason: String(error) }, message);
      });
    }
  }

  /** Renumber the slots without those that are free. */
  #compact(): void {
    const numbers = new Uint32Array(this.#slots.length).fill(FREE);
    const slots: StoredDocument[] = [];
    const matrix = new VectorMatrix();
    for (const document of this.#slots) {
      // The slots of a document follow each other.
      if (document === undefined || document.path === slots.at(-1)?.path) continue;
      const moved = { ...document, firstSlot: slots.length };
      this.#documents.set(moved.path, moved);
      for (let slot = document.firstSlot; slot < document.firstSlot + moved.chunks.length; slot++) {
        numbers[slot] = slots.length;
        if (this.#matrix.dimensions !== undefined) matrix.put(slots.length, this.#matrix.at(slot));
        slots.push(moved);
      }
    }
    this.#slots = slots;
    this.#isShared = false;
    this.#matrix = matrix;
    this.#postings.renumber(numbers);
  }
}

/** Makes the conversations when they are first asked for, of what the slots hold now. */
function once(slots: Slots, chunks: number): () => Promise<Conversations> {
  const size = slots.length;
  let made: Promise<Conversations> | undefined;
  return () => (made ??= Conversations.of(slots.slice(0, size), chunks));
}

function* recordsOf(
  documents: readonly StoredDocument[],
  matrix: VectorMatrix,
): Generator<DocumentRecord> {
  for (const document of documents) {
    const { path, stamp, title, tags, sessionId, metadata, chunks, firstSlot } = document;
    const slots = chunks.map((_, ordinal) => firstSlot + ordinal);
    const hasVectors = matrix.dimensions !== undefined;
    const vectors = hasVectors ? slots.map((slot) => matrix.at(slot)) : [];
    yield { path, stamp, title, tags, sessionId, metadata, chunks, vectors };
  }
}

function recordOf({ metadata, ...document }: IndexedDocument): DocumentRecord {
  return {
    ...document,
    sessionId: typeof metadata.session_id === "string" ? metadata.session_id : undefined,
    metadata: stringifyExactly(metadata),
  };
}
