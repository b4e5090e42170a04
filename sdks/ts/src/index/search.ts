/** One search of an index. */

import { ConversationScores } from "../rank/conversation.js";
import { BestHits, type Hit, inverseL2, type Kernel, roundScore } from "../rank/rank.js";
import { compareUtf8 } from "../text/order.js";
import { withoutStopWords } from "../text/stopWords.js";
import { parseExactly } from "../wire/exactJson.js";
import type { Conversations } from "./conversations.js";
import type { DocumentFilter } from "./filter.js";
import type { VectorMatrix } from "./matrix.js";
import { Pace } from "./pace.js";
import type { Scorer } from "./postings.js";
import type { Slots, StoredDocument } from "./slots.js";

/** How many slots are looked at before the clock is. */
const PIECE = 1024;

export interface StoredChunk {
  path: string;
  ordinal: number;
  text: string;
  title: string | undefined;
  metadata: Record<string, unknown>;
}

/**
 * Sees the index as it was when the search began, so that it can give other requests their turn: what
 * they change replaces what a search has, or is behind it.
 */
export class Search {
  readonly #slots: Slots;
  readonly #size: number;
  readonly #allows: DocumentFilter | undefined;
  readonly #scorer: Scorer;
  readonly #matrix: VectorMatrix;
  readonly #conversations: () => Promise<Conversations>;

  constructor(
    slots: Slots,
    allows: DocumentFilter | undefined,
    scorer: Scorer,
    matrix: VectorMatrix,
    /** Whether any chunk of the brain is a turn. */
    readonly hasTurns: boolean,
    conversations: () => Promise<Conversations>,
  ) {
    this.#slots = slots;
    this.#size = slots.length;
    this.#allows = allows;
    this.#scorer = scorer;
    this.#matrix = matrix;
    this.#conversations = conversations;
  }

  /**
   * The best `limit` chunks by bm25, with the statistics of the whole brain.
   *
   * @throws The reason of `signal`, as `semantic` does.
   */
  async keyword(limit: number, signal?: AbortSignal): Promise<Hit[]> {
    const pace = new Pace(signal);
    const scores = await this.#scorer.scores(pace);
    const best = new BestHits(limit, this.compare);
    for (let start = 0; start < this.#size; start += PIECE) {
      if (pace.isOver) await pace.rest();
      const end = Math.min(start + PIECE, this.#size);
      for (let slot = start; slot < end; slot++) {
        const score = scores[slot] ?? 0;
        if (score !== 0 && this.#isAllowed(slot)) best.offer(slot, roundScore(score));
      }
    }
    this.#scorer.release(scores);
    return best.sorted();
  }

  /** The best `limit` chunks by `kernel`, an exact search over all chunks that the filter allows. */
  async semantic(
    vector: Float32Array,
    limit: number,
    kernel: Kernel,
    signal?: AbortSignal,
  ): Promise<Hit[]> {
    const best = new BestHits(limit, this.compare);
    const isAllowed = (slot: number) => this.#isAllowed(slot);
    await this.#compareVectors(vector, isAllowed, new Pace(signal), (slot, cosine) => {
      best.offer(slot, kernel === "cosine" ? cosine : inverseL2(cosine));
    });
    return best.sorted();
  }

  /**
   * The best `limit` chunks as parts of conversations, with the statistics of the whole brain. Without a
   * vector, only those are found that a word reaches.
   */
  async conversation(
    vector: Float32Array | undefined,
    limit: number,
    signal?: AbortSignal,
  ): Promise<Hit[]> {
    const pace = new Pace(signal);
    const conversations = await this.#conversations();
    const { slots, places, placeOf } = conversations;
    const scores = new ConversationScores(places);
    for (const [term, times] of keywords(this.#scorer.terms)) {
      await this.#scorer.visit(term, pace, (slot, score) => {
        const place = placeOf(slot);
        if (place !== undefined) scores.spread(place, score);
      });
      scores.add(times);
    }
    if (vector !== undefined) {
      const cosines = new Float64Array(places.length);
      const isThere = (slot: number) => placeOf(slot) !== undefined;
      await this.#compareVectors(vector, isThere, pace, (slot, cosine) => {
        cosines[placeOf(slot) ?? 0] = cosine;
      });
      scores.compare(cosines);
    }
    const isNamed = conversations.named(this.#scorer.terms);
    const best = new BestHits(limit, this.compare);
    for (let start = 0; start < places.length; start += PIECE) {
      if (pace.isOver) await pace.rest();
      const end = Math.min(start + PIECE, places.length);
      for (let place = start; place < end; place++) {
        const score = scores.score(place, isNamed(place));
        const slot = slots[place] ?? 0;
        if (score !== undefined && this.#isAllowed(slot)) best.offer(slot, roundScore(score));
      }
    }
    return best.sorted();
  }

  /** The ranking order: best score, then path by its UTF-8 bytes, then ordinal. */
  readonly compare = (a: Hit, b: Hit): number => {
    if (a.score !== b.score) return b.score - a.score;
    // The slots of a document are in the order of its chunks.
    return compareUtf8(this.#at(a.slot).path, this.#at(b.slot).path) || a.slot - b.slot;
  };

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

  /** @throws RangeError if the slot is free. */
  #at(slot: number): StoredDocument {
    const document = this.#slots[slot];
    if (document === undefined) throw new RangeError(`slot ${slot} holds no chunk`);
    return document;
  }

  #isAllowed(slot: number): boolean {
    const document = this.#slots[slot];
    return document !== undefined && (this.#allows === undefined || this.#allows(document));
  }

  /** Call `each` with every slot that `includes` includes, and its rounded cosine. */
  async #compareVectors(
    vector: Float32Array,
    includes: (slot: number) => boolean,
    pace: Pace,
    each: (slot: number, cosine: number) => void,
  ): Promise<void> {
    this.#matrix.requireDimensions([vector]);
    const dots = this.#matrix.dotsWith(vector);
    for (let start = 0; start < this.#size; start += PIECE) {
      if (pace.isOver) await pace.rest();
      const end = Math.min(start + PIECE, this.#size);
      const slots: number[] = [];
      for (let slot = start; slot < end; slot++) if (includes(slot)) slots.push(slot);
      const sums = dots(slots);
      slots.forEach((slot, i) => {
        each(slot, roundScore(sums[i] ?? 0));
      });
    }
  }
}

/** The terms without stop words, unless nothing is left of them; how often each occurs. */
function keywords(terms: readonly string[]): Map<string, number> {
  const left = withoutStopWords(terms);
  const counts = new Map<string, number>();
  for (const term of left.length > 0 ? left : terms) counts.set(term, (counts.get(term) ?? 0) + 1);
  return counts;
}
