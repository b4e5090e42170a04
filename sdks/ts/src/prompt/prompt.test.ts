import assert from "node:assert/strict";
import { test } from "node:test";

import type { ReaderMode } from "../reader/reader.js";
import { sharedVectors } from "../testing/vectors.js";
import { type Note, readerPrompt, rerankPrompt } from "./prompt.js";

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
