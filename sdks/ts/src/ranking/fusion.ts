/** Score rounding and the fusion of two rankings. */

export interface Hit {
  /** The chunk's place in the index. */
  slot: number;
  score: number;
}

/**
 * The score to the 1e-9 in which all comparing and fusing is done. Languages differ in the last bits
 * of a sum; rounding half up on the scaled value is plain IEEE arithmetic, so that what was equal in
 * meaning is equal in bits.
 */
export function rounded(score: number): number {
  const scaled = score * 1e9;
  // A reranker may say 1e300, which has no such digits to lose.
  return Number.isFinite(scaled) ? Math.floor(scaled + 0.5) / 1e9 : score;
}

/** `alpha` · semantic + (1 − `alpha`) · keyword, each leg scaled to [0, 1]; an absent score is 0. */
export function fuseMinMax(keyword: Hit[], semantic: Hit[], alpha: number): Hit[] {
  const keywordScores = scaled(keyword);
  const semanticScores = scaled(semantic);
  const slots = new Set([...keywordScores.keys(), ...semanticScores.keys()]);
  return Array.from(slots, (slot) => ({
    slot,
    score: rounded(
      alpha * (semanticScores.get(slot) ?? 0) + (1 - alpha) * (keywordScores.get(slot) ?? 0),
    ),
  }));
}

/** Reciprocal rank fusion: the sum of 1 / (`k` + rank), ranks from 0. */
export function fuseReciprocalRank(keyword: Hit[], semantic: Hit[], k: number): Hit[] {
  const scores = new Map<number, number>();
  for (const leg of [keyword, semantic]) {
    for (const [rank, { slot }] of leg.entries()) {
      scores.set(slot, (scores.get(slot) ?? 0) + 1 / (k + rank));
    }
  }
  return Array.from(scores, ([slot, score]) => ({ slot, score: rounded(score) }));
}

/** Legs come best first, so their ends are the range. */
function scaled(leg: Hit[]): Map<number, number> {
  const low = leg.at(-1)?.score ?? 0;
  const span = (leg[0]?.score ?? 0) - low;
  return new Map(leg.map(({ slot, score }) => [slot, span === 0 ? 1 : (score - low) / span]));
}
