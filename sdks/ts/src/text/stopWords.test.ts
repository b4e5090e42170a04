import assert from "node:assert/strict";
import { test } from "node:test";

import { sharedVectors } from "../testing/vectors.js";
import { STOP_WORDS } from "./stopWords.js";

test("the stop words are the shared ones", () => {
  const vectors = sharedVectors("reader") as { stop_words: string[] };
  assert.deepEqual([...STOP_WORDS].sort(), vectors.stop_words);
});
