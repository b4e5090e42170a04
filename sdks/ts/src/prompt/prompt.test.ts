import assert from "node:assert/strict";
import { test } from "node:test";

import { sharedVectors } from "../testing/vectors.js";
import { citedNotes, type Note, readerPrompt, rerankPrompt, scoresIn } from "./prompt.js";
import type { ReaderMode } from "../reader/reader.js";

const vectors = sharedVectors("prompt") as {
  system: Record<ReaderMode, string>;
  rerankSystem: string;
  cases: {
    question: string;
    questionDate?: string;
    readerMode: ReaderMode;
    chunks: Note[];
    user: string;
  }[];
  citations: { answer: string; notes: number; cited: number[] }[];
  replies: { reply: string; documents: number; scores: number[] | null }[];
};

for (const [number, one] of vectors.cases.entries()) {
  test(`prompt ${number}, ${one.readerMode}`, () => {
    const { question: text, questionDate: date, readerMode, chunks } = one;
    assert.deepEqual(readerPrompt({ text, date, readerMode }, chunks), {
      system: vectors.system[readerMode],
      user: one.user,
    });
  });
}

test("the rerank prompt is a basic prompt without a date", () => {
  const { question: text, chunks } = vectors.cases[2] ?? { question: "", chunks: [] };
  const asked = readerPrompt({ text, date: undefined, readerMode: "basic" }, chunks);
  assert.deepEqual(rerankPrompt(text, chunks), { ...asked, system: vectors.rerankSystem });
});

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
