import assert from "node:assert/strict";
import { test } from "node:test";

import { sharedVectors } from "../testing/vectors.js";
import { cutoffScore, inverseL2, roundScore } from "./rank.js";

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

test("the cutoff equals that of the sorted scores", () => {
  for (let size = 0; size < 120; size++) {
    const scores = Float64Array.from({ length: size }, (_, i) => ((i * 7919) % 83) / 8 - 5);
    for (const limit of [1, 2, 10, 50, 200]) {
      const sorted = scores.toSorted();
      const expected = size > limit ? sorted[size - limit] : -Infinity;
      assert.equal(cutoffScore(scores, limit), expected, `${limit} of ${size}`);
    }
  }
});

test("ascending, descending and equal scores have a cutoff", () => {
  const rising = Float64Array.from({ length: 1000 }, (_, i) => i);
  assert.equal(cutoffScore(rising, 10), 990);
  assert.equal(cutoffScore(rising.toReversed(), 10), 990);
  assert.equal(cutoffScore(new Float64Array(1000).fill(3), 10), 3);
});
