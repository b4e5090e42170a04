/** Scores: rounding, kernels, and the best of many. */

export interface Hit {
  /** The chunk's slot in the index. */
  slot: number;
  score: number;
}

/**
 * Round a score to 1e-9, the precision at which scores are compared and fused. Languages differ in the
 * last bits of a sum; rounding half up on the scaled value is plain IEEE arithmetic, so scores that
 * should be equal are equal bit by bit.
 */
export function roundScore(score: number): number {
  const scaled = score * 1e9;
  // A reranker may return 1e300, which has no such digits to lose.
  return Number.isFinite(scaled) ? Math.floor(scaled + 0.5) / 1e9 : score;
}

/** What makes a score of a cosine. */
export type Kernel = "cosine" | "inverse-l2";

/**
 * 1 / (1 + L2) of vectors of length 1, whose distance L2 is √(2 − 2 · cosine); `cosine` is rounded, as
 * is the result.
 */
export function inverseL2(cosine: number): number {
  // float32 vectors have cosines slightly above 1.
  return roundScore(1 / (1 + Math.sqrt(Math.max(0, 2 - 2 * cosine))));
}

/** The best of many hits. What is worse than all of them costs one comparison; there is no list of all. */
export class BestHits {
  readonly #limit: number;
  readonly #compare: (a: Hit, b: Hit) => number;
  /** A heap: each hit is better than the two after twice its place, so the worst is first. */
  readonly #heap: Hit[] = [];

  /** @param limit At least 1. */
  constructor(limit: number, compare: (a: Hit, b: Hit) => number) {
    this.#limit = limit;
    this.#compare = compare;
  }

  offer(slot: number, score: number): void {
    const heap = this.#heap;
    if (heap.length < this.#limit) {
      this.#rise({ slot, score });
      return;
    }
    const [worst] = heap;
    if (worst === undefined || score < worst.score) return;
    const hit = { slot, score };
    if (this.#compare(hit, worst) < 0) this.#sink(hit);
  }

  /** Best first. */
  sorted(): Hit[] {
    return this.#heap.toSorted(this.#compare);
  }

  /** Add a hit. */
  #rise(hit: Hit): void {
    const heap = this.#heap;
    let place = heap.length;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || this.#compare(parent, hit) > 0) break;
      heap[place] = parent;
      place = above;
    }
    heap[place] = hit;
  }

  /** Replace the worst hit. */
  #sink(hit: Hit): void {
    const heap = this.#heap;
    let place = 0;
    for (;;) {
      let below = 2 * place + 1;
      let child = heap[below];
      if (child === undefined) break;
      const other = heap[below + 1];
      if (other !== undefined && this.#compare(other, child) > 0) {
        child = other;
        below++;
      }
      if (this.#compare(hit, child) > 0) break;
      heap[place] = child;
      place = below;
    }
    heap[place] = hit;
  }
}
