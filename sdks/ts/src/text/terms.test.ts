import assert from "node:assert/strict";
import { test } from "node:test";

import { sharedVectors } from "../testing/vectors.js";
import { queryTerms, terms } from "./terms.js";

const { cases } = sharedVectors("terms") as { cases: { text: string; terms: string[] }[] };

for (const { text, terms: expected } of cases) {
  test(`terms of ${JSON.stringify(text)}`, () => {
    assert.deepEqual(terms(text), expected);
  });
}

test("a search uses the first 256 terms", () => {
  const words = Array.from({ length: 300 }, (_, i) => `word${i}`);
  assert.deepEqual(queryTerms(words.join(" ")), words.slice(0, 256));
});
