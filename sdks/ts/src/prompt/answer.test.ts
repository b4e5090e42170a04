import assert from "node:assert/strict";
import { test } from "node:test";

import { sharedVectors } from "../testing/vectors.js";
import { citedNotes, scoresIn } from "./answer.js";

const vectors = sharedVectors("prompt") as {
  citations: { answer: string; notes: number; cited: number[] }[];
  replies: { reply: string; documents: number; scores: number[] | null }[];
};

for (const { answer, notes, cited } of vectors.citations) {
  test(`citations of ${JSON.stringify(answer)}`, () => {
    const numbers = Array.from({ length: notes }, (_, index) => index);
    assert.deepEqual(citedNotes(answer, numbers), cited);
  });
}

for (const { reply, documents, scores } of vectors.replies) {
  test(`scores in ${JSON.stringify(reply)}`, () => {
    assert.deepEqual(scoresIn(reply, documents) ?? null, scores);
  });
}
