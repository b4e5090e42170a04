/** The ranking of conversations: chunks gain by those around them, and by how turns are taken. */

/** Code points from which on a text gains nothing by its length. */
export const LONGEST_TURN = 300;

/** What a term counts for in the chunks after the one that contains it, and in those before, by steps. */
const AFTER = [0.7, 0.7 ** 2, 0.7 ** 3, 0.7 ** 4];
const BEFORE = [0.6, 0.6 ** 2, 0.6 ** 3, 0.6 ** 4];

/** What the vectors of the chunks one step away count for. */
const BESIDE = 0.5;
const VECTORS = 1.4;
const SPEAKER = 2;
const LENGTH = 2;

/** The deviation of cosines that tell chunks apart. */
const LEAST_DEVIATION = 1e-9;

/* eslint-disable @typescript-eslint/no-non-null-assertion -- inside by construction, and the hottest loops */

/**
 * Chunks in the order in which things were said, session by session: the chunk n steps away is the place
 * n further on, if that has the same session.
 */
export class Places {
  /** What each place gains by the length of its text, and as a reply. */
  readonly #gains: Float64Array;

  /**
   * @param sessions The number of each place's session.
   * @param points The code points of its text, at most `LONGEST_TURN`.
   * @param asks Whether it contains a question mark, 1 or 0.
   */
  constructor(
    readonly sessions: Uint32Array,
    points: Uint16Array,
    asks: Uint8Array,
  ) {
    this.#gains = new Float64Array(sessions.length);
    for (let at = 0; at < sessions.length; at++) {
      const follows = this.continues(at);
      if (!follows && !this.continues(at + 1)) continue;
      const reply = (follows ? asks[at - 1]! : 1) - asks[at]!;
      this.#gains[at] = LENGTH * Math.log(points[at]! / LONGEST_TURN) + reply;
    }
  }

  get length(): number {
    return this.sessions.length;
  }

  /** Whether the place and the one before it are of one session. */
  continues(at: number): boolean {
    return at > 0 && at < this.length && this.sessions[at] === this.sessions[at - 1];
  }

  gain(at: number): number {
    return this.#gains[at]!;
  }
}

/** Scores the places for one query. */
export class ConversationScores {
  readonly #places: Places;
  readonly #words: Float64Array;
  /** What the term that is being added counts for; 0 where it does not reach. */
  readonly #best: Float64Array;
  /** The places where it does, and how many there are. */
  readonly #reached: Uint32Array;
  #count = 0;
  /** By how many deviations each cosine exceeds the mean, if vectors are compared. */
  #standard: Float64Array | undefined;

  constructor(places: Places) {
    this.#places = places;
    this.#words = new Float64Array(places.length);
    this.#best = new Float64Array(places.length);
    this.#reached = new Uint32Array(places.length);
  }

  /** Spread the positive score of a term at a place that contains it. */
  spread(at: number, score: number): void {
    const { sessions } = this.#places;
    const session = sessions[at]!;
    this.#raise(at, score);
    for (let i = 0; i < AFTER.length && sessions[at + i + 1] === session; i++) {
      this.#raise(at + i + 1, AFTER[i]! * score);
    }
    for (let i = 0; i < BEFORE.length && sessions[at - i - 1] === session; i++) {
      this.#raise(at - i - 1, BEFORE[i]! * score);
    }
  }

  /** Add the term whose scores were spread, which occurs in the query so many times. */
  add(times: number): void {
    for (let i = 0; i < this.#count; i++) {
      const at = this.#reached[i]!;
      this.#words[at]! += times * this.#best[at]!;
      this.#best[at] = 0;
    }
    this.#count = 0;
  }

  /** Compare vectors, whose cosines these are, one for each place. */
  compare(cosines: Float64Array): void {
    this.#standard = standardized(cosines);
  }

  /**
   * The score of a place whose speaker is named or not; it may be negative. Undefined if it is not found:
   * without vectors, that is where no word reaches.
   */
  score(at: number, named: boolean): number | undefined {
    const words = this.#words[at]!;
    const standard = this.#standard;
    if (standard === undefined && words === 0) return undefined;
    const score = words + (named ? SPEAKER : 0) + this.#places.gain(at);
    if (standard === undefined) return score;
    let beside = 0;
    if (this.#places.continues(at)) beside += standard[at - 1]!;
    if (this.#places.continues(at + 1)) beside += standard[at + 1]!;
    return score + VECTORS * (standard[at]! + BESIDE * beside);
  }

  #raise(at: number, score: number): void {
    const best = this.#best[at]!;
    if (best === 0) this.#reached[this.#count++] = at;
    if (score > best) this.#best[at] = score;
  }
}

/** By how many standard deviations each value exceeds the mean; zeros if the values are equal. */
function standardized(values: Float64Array): Float64Array {
  let mean = 0;
  for (const value of values) mean += value / values.length;
  let variance = 0;
  for (const value of values) variance += ((value - mean) * (value - mean)) / values.length;
  const deviation = Math.sqrt(variance);
  return values.map((value) => (deviation < LEAST_DEVIATION ? 0 : (value - mean) / deviation));
}
