/** The fusion of two rankings. */

import { type Hit, roundScore } from "./rank.js";

/** `alpha` · semantic + (1 − `alpha`) · keyword, each leg scaled to [0, 1]; a missing score is 0. */
export function fuseMinMax(keyword: Hit[], semantic: Hit[], alpha: number): Hit[] {
  const keywordScores = minMaxScores(keyword);
  const semanticScores = minMaxScores(semantic);
  const slots = new Set([...keywordScores.keys(), ...semanticScores.keys()]);
  return Array.from(slots, (slot) => ({
    slot,
    score: roundScore(
      alpha * (semanticScores.get(slot) ?? 0) + (1 - alpha) * (keywordScores.get(slot) ?? 0),
    ),
  }));
}

/** Reciprocal rank fusion: the sum of 1 / (`k` + rank), ranks from 0. */
export function fuseReciprocal(keyword: Hit[], semantic: Hit[], k: number): Hit[] {
  const scores = new Map<number, number>();
  for (const leg of [keyword, semantic]) {
    for (const [rank, { slot }] of leg.entries()) {
      scores.set(slot, (scores.get(slot) ?? 0) + 1 / (k + rank));
    }
  }
  return Array.from(scores, ([slot, score]) => ({ slot, score: roundScore(score) }));
}

/** Scores scaled to [0, 1]. Legs are sorted best first, so their ends are the range. */
function minMaxScores(leg: Hit[]): Map<number, number> {
  const low = leg.at(-1)?.score ?? 0;
  const span = (leg[0]?.score ?? 0) - low;
  return new Map(leg.map(({ slot, score }) => [slot, span === 0 ? 1 : (score - low) / span]));
}
