import assert from "node:assert/strict";
import { test } from "node:test";

import { sharedVectors } from "../testing/vectors.js";
import { BestHits, type Hit, inverseL2, roundScore } from "./rank.js";

const vectors = sharedVectors("fusion") as {
  rounding: { score: number; rounded: number }[];
  kernel: { cosine: number; "inverse-l2": number }[];
};

for (const { score, rounded: expected } of vectors.rounding) {
  test(`${score} is rounded to ${expected}`, () => {
    assert.equal(roundScore(score), expected);
  });
}

for (const { cosine, "inverse-l2": expected } of vectors.kernel) {
  test(`the score of the cosine ${cosine} is ${expected}`, () => {
    assert.equal(inverseL2(cosine), expected);
  });
}

const byScore = (a: Hit, b: Hit) => b.score - a.score || a.slot - b.slot;

function best(scores: readonly number[], limit: number): Hit[] {
  const hits = new BestHits(limit, byScore);
  for (const [slot, score] of scores.entries()) hits.offer(slot, score);
  return hits.sorted();
}

test("the best hits are the first of all in order", () => {
  for (let size = 0; size < 120; size++) {
    const rising = Array.from({ length: size }, (_, i) => i);
    const mixed = rising.map((i) => ((i * 7919) % 83) / 8 - 5);
    for (const scores of [mixed, rising, rising.toReversed(), mixed.map(() => 3)]) {
      const sorted = scores.map((score, slot) => ({ slot, score })).sort(byScore);
      for (const limit of [1, 2, 10, 50, 200]) {
        assert.deepEqual(best(scores, limit), sorted.slice(0, limit), `${limit} of ${size}`);
      }
    }
  }
});
