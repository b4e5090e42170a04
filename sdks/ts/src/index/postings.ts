/** Which chunks contain a token, and how often. */

import { tokens } from "../text/tokens.js";
import type { Pace } from "./pace.js";

/** The parameters of bm25. */
const K1 = 1.2;
const B = 0.75;

/** How many numbers of occurrences, two for each chunk, are looked at before the clock is. */
const PIECE = 8192;

/** The number of a slot that is dropped. */
export const FREE = 0xffff_ffff;

/* eslint-disable @typescript-eslint/no-non-null-assertion -- inside by construction, and the hottest loops */

export class Postings {
  readonly #lists = new Map<string, Occurrences>();
  /** The number of tokens in each slot. */
  #lengths: number[] = [];
  /** The number of tokens in all chunks. */
  #total = 0;
  readonly #buffer = new ScoreBuffer();

  /** Add the text of the next slot. */
  add(text: string): void {
    const slot = this.#lengths.length;
    const found = tokens(text);
    for (const token of found) {
      let list = this.#lists.get(token);
      if (list === undefined) this.#lists.set(token, (list = new Occurrences()));
      list.count(slot);
    }
    this.#lengths.push(found.length);
    this.#total += found.length;
  }

  /** Count a chunk no longer; its slot stays until it is dropped. */
  remove(slot: number, text: string): void {
    for (const token of new Set(tokens(text))) {
      const list = this.#lists.get(token);
      if (list !== undefined) list.chunks--;
    }
    this.#total -= this.#lengths[slot] ?? 0;
  }

  /** Give each slot its new number, or drop it if that is `FREE`. */
  renumber(numbers: Uint32Array): void {
    for (const [token, list] of this.#lists) {
      list.renumber(numbers);
      if (list.chunks === 0) this.#lists.delete(token);
    }
    this.#lengths = this.#lengths.filter((_, slot) => numbers[slot] !== FREE);
  }

  /**
   * What scores the slots by bm25, as the texts are now. Of `chunks` that are not gone, `textOf` returns
   * the text; of others, undefined.
   */
  scorer(
    terms: readonly string[],
    chunks: number,
    textOf: (slot: number) => string | undefined,
  ): Scorer {
    const phrases = new Map<string, Phrase>();
    for (const term of terms) {
      const phrase = tokens(term);
      const lists = phrase.map((token) => this.#lists.get(token));
      const first = lists.includes(undefined) ? undefined : lists[0]?.now();
      phrases.set(term, { tokens: phrase, first });
    }
    const mean = this.#total / chunks;
    return new Scorer(terms, phrases, this.#lengths, mean, chunks, textOf, this.#buffer);
  }
}

/** Keeps an array for the next search: a new one for each has the garbage collector take half of the time. */
class ScoreBuffer {
  #spare: Float64Array = new Float64Array();

  /** An array of zeros, at least `size`. */
  take(size: number): Float64Array {
    const spare = this.#spare;
    this.#spare = new Float64Array();
    return spare.length < size ? new Float64Array(size) : spare.fill(0);
  }

  /** Keep an array that is no longer used. */
  give(scores: Float64Array): void {
    this.#spare = scores;
  }
}

/** The tokens of a term, and where the first of them occurs, if all do somewhere. */
interface Phrase {
  readonly tokens: readonly string[];
  readonly first: OccurrencesNow | undefined;
}

/** Some occurrences of a term: slots, each followed by its number of occurrences. */
interface Piece {
  readonly numbers: Uint32Array;
  readonly idf: number;
}

/** Scores by bm25 in the order of FTS5's arithmetic. What is indexed meanwhile does not change them. */
export class Scorer {
  readonly #phrases: ReadonlyMap<string, Phrase>;
  readonly #lengths: readonly number[];
  readonly #size: number;
  readonly #mean: number;
  readonly #chunks: number;
  readonly #textOf: (slot: number) => string | undefined;
  readonly #buffer: ScoreBuffer;

  /** @param terms Those of the query, in order and with duplicates. */
  constructor(
    readonly terms: readonly string[],
    phrases: ReadonlyMap<string, Phrase>,
    lengths: readonly number[],
    mean: number,
    chunks: number,
    textOf: (slot: number) => string | undefined,
    buffer: ScoreBuffer,
  ) {
    this.#phrases = phrases;
    this.#lengths = lengths;
    this.#size = lengths.length;
    this.#mean = mean;
    this.#chunks = chunks;
    this.#textOf = textOf;
    this.#buffer = buffer;
  }

  /** The score of each slot, 0 without any of the terms; to be released when no longer used. */
  async scores(pace: Pace): Promise<Float64Array> {
    const scores = this.#buffer.take(this.#size);
    for (const term of this.terms) {
      for await (const piece of this.#pieces(term, pace)) this.#add(scores, piece);
    }
    return scores;
  }

  /**
   * Call `each` with every slot that contains a term of the query, and its score for that term alone;
   * some of the slots may be free.
   */
  async visit(
    term: string,
    pace: Pace,
    each: (slot: number, score: number) => void,
  ): Promise<void> {
    for await (const piece of this.#pieces(term, pace)) this.#visit(piece, each);
  }

  release(scores: Float64Array): void {
    this.#buffer.give(scores);
  }

  async *#pieces(term: string, pace: Pace): AsyncGenerator<Piece> {
    const found = await this.#occurrences(this.#phrases.get(term)!, pace);
    if (found === undefined) return;
    const idf = Math.log((this.#chunks - found.chunks + 0.5) / (found.chunks + 0.5));
    for (let start = 0; start < found.length; start += PIECE) {
      if (pace.isOver) await pace.rest();
      const numbers = found.numbers.subarray(start, Math.min(start + PIECE, found.length));
      yield { numbers, idf: idf > 0 ? idf : 1e-6 };
    }
  }

  /**
   * Where a term occurs. One of several tokens is a phrase: it contains one of the few code points that
   * are letters or numbers for the contract, but not for the tokenizer.
   */
  async #occurrences({ tokens: phrase, first }: Phrase, pace: Pace) {
    if (first === undefined || phrase.length === 1) return first;
    const found = new Occurrences();
    for (let i = 0; i < first.length; i += 2) {
      if (pace.isOver) await pace.rest();
      const slot = first.numbers[i]!;
      const text = tokens(this.#textOf(slot) ?? "");
      text.forEach((_, start) => {
        if (phrase.every((token, i) => text[start + i] === token)) found.count(slot);
      });
    }
    return found.now();
  }

  #add(scores: Float64Array, { numbers, idf }: Piece): void {
    for (let i = 0; i < numbers.length; i += 2) {
      const slot = numbers[i]!;
      scores[slot]! += idf * saturation(numbers[i + 1]!, this.#lengths[slot]!, this.#mean);
    }
  }

  // Like `#add`, which takes twice the time if it calls a function for each slot.
  #visit({ numbers, idf }: Piece, each: (slot: number, score: number) => void): void {
    for (let i = 0; i < numbers.length; i += 2) {
      const slot = numbers[i]!;
      each(slot, idf * saturation(numbers[i + 1]!, this.#lengths[slot]!, this.#mean));
    }
  }
}

/** What `count` occurrences are worth in a chunk of `length` tokens. */
function saturation(count: number, length: number, mean: number): number {
  const norm = K1 * (1 - B + (B * length) / mean);
  return (count * (K1 + 1)) / (count + norm);
}

/** Occurrences that later ones do not change. */
type OccurrencesNow = Readonly<Pick<Occurrences, "numbers" | "length" | "chunks">>;

/** The chunks with a token; those that are gone stay until they are dropped. */
class Occurrences {
  /** Slots in ascending order, each followed by its number of occurrences. */
  numbers = new Uint32Array(4);
  /** How many of the numbers are in use. */
  length = 0;
  /** How many of the chunks are not gone. */
  chunks = 0;

  /** Count an occurrence in a slot, the last one or a later one. */
  count(slot: number): void {
    if (this.length === 0 || this.numbers[this.length - 2] !== slot) {
      this.#push(slot, 0);
      this.chunks++;
    }
    this.numbers[this.length - 1]!++;
  }

  now(): OccurrencesNow {
    const { numbers, length, chunks } = this;
    return { numbers, length, chunks };
  }

  /** Give each slot its new number, or drop it if that is `FREE`. */
  renumber(numbers: Uint32Array): void {
    const old = this.numbers.subarray(0, this.length);
    this.numbers = new Uint32Array(2 * this.chunks);
    this.length = 0;
    for (let i = 0; i < old.length; i += 2) {
      const number = numbers[old[i]!]!;
      if (number !== FREE) this.#push(number, old[i + 1]!);
    }
  }

  #push(slot: number, count: number): void {
    if (this.length === this.numbers.length) {
      const grown = new Uint32Array(2 * this.length);
      grown.set(this.numbers);
      this.numbers = grown;
    }
    this.numbers[this.length++] = slot;
    this.numbers[this.length++] = count;
  }
}
