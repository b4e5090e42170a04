import assert from "node:assert/strict";
import { test } from "node:test";

import { sharedVectors } from "../testing/vectors.js";
import { inverseL2 } from "./rank.js";

const vectors = sharedVectors("fusion") as { kernel: { cosine: number; "inverse-l2": number }[] };

for (const { cosine, "inverse-l2": expected } of vectors.kernel) {
  test(`the score of the cosine ${cosine} is ${expected}`, () => {
    assert.equal(inverseL2(cosine), expected);
  });
}
