/** The kernels of a semantic ranking: what makes a score of a cosine. */

import { roundScore } from "./fuse.js";

export type Kernel = "cosine" | "inverse-l2";

/**
 * 1 / (1 + L2) of vectors of length 1, whose distance L2 is √(2 − 2 · cosine); `cosine` is rounded, as
 * is the result.
 */
export function inverseL2(cosine: number): number {
  // float32 vectors have cosines slightly above 1.
  return roundScore(1 / (1 + Math.sqrt(Math.max(0, 2 - 2 * cosine))));
}
