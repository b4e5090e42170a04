/** Scores that take the dates of documents into account (core.rank.recency, core.rank.temporal). */

import { epochSeconds } from "../moment.js";
import { type Hit, roundScore } from "./rank.js";

export interface Recency {
  now: string;
  relevance: number;
  weight: number;
  decayDays: number;
}

export interface Temporal {
  at: string;
  toleranceDays: number;
  boost: number;
}

/**
 * Score all fused hits again. `dateOf` returns the date of a slot's document in seconds from 1970, or
 * undefined if it has none.
 */
export function byDate(
  hits: readonly Hit[],
  dateOf: (slot: number) => number | undefined,
  { recency, temporal }: { recency?: Recency | undefined; temporal?: Temporal | undefined },
): Hit[] {
  const best = hits.reduce((most, { score }) => Math.max(most, score), 0);
  return hits.map((hit) => {
    const date = dateOf(hit.slot);
    let score = best > 0 ? hit.score / best : 0;
    if (recency) {
      score = roundScore(recency.relevance * score + recency.weight * decay(recency, date));
    }
    if (temporal) score = roundScore(score * (1 + temporal.boost * proximity(temporal, date)));
    return { slot: hit.slot, score };
  });
}

/** 1 for a document of now or later, and 1/e for one that is `decayDays` old. */
function decay({ now, decayDays }: Recency, date: number | undefined): number {
  if (date === undefined) return 0;
  // Rounded, because languages differ in the last bit of an exponential.
  return roundScore(Math.exp(-Math.max(0, daysFrom(date, now)) / decayDays));
}

/** 1 within the tolerance of the target, falling to 0 at three times the tolerance. */
function proximity({ at, toleranceDays }: Temporal, date: number | undefined): number {
  if (date === undefined) return 0;
  const distance = Math.abs(daysFrom(date, at));
  return Math.min(1, Math.max(0, 1 - (distance - toleranceDays) / (2 * toleranceDays)));
}

function daysFrom(date: number, moment: string): number {
  return ((epochSeconds(moment) ?? Number.NaN) - date) / 86_400;
}
