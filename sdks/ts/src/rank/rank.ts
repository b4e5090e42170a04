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

/**
 * The score of the last of the best `limit` (at least 1) scores: lower scores are not among them, and
 * ties may be. Few scores enter the list once it holds good ones, so 100,000 scores take a fraction of
 * the time needed to sort them.
 */
export function cutoffScore(scores: Float64Array, limit: number): number {
  if (scores.length <= limit) return -Infinity;
  const best = scores.slice(0, limit).sort();
  let least = best[0] ?? -Infinity;
  for (let i = limit; i < scores.length; i++) {
    const score = scores[i] ?? -Infinity;
    if (score <= least) continue;
    let place = 1;
    let end = limit;
    while (place < end) {
      const middle = (place + end) >> 1;
      if ((best[middle] ?? Infinity) < score) place = middle + 1;
      else end = middle;
    }
    best.copyWithin(0, 1, place);
    best[place - 1] = score;
    least = best[0] ?? -Infinity;
  }
  return least;
}
