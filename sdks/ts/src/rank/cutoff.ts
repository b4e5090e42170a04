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
