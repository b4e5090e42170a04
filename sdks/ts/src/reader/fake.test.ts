import assert from "node:assert/strict";
import { test } from "node:test";

import { sharedVectors } from "../testing/vectors.js";
import { FakeReader } from "./fake.js";

const vectors = sharedVectors("reader") as {
  cases: {
    question: string;
    chunks: string[];
    answer: string;
    source: number | null;
    deltas: string[];
    note?: string;
  }[];
};

for (const { question, chunks: texts, answer, source, deltas, note } of vectors.cases) {
  test(`the fake reader: ${note ?? question} (${texts.length})`, async () => {
    const chunks = texts.map((text, i) => {
      return { chunkId: `d#${i}`, documentId: "d", path: "d.md", score: 1, text };
    });
    const asked = {
      text: question,
      date: undefined,
      readerMode: "basic",
      model: undefined,
    } as const;
    const pieces: string[] = [];
    for await (const event of new FakeReader().read({ ...asked, chunks })) {
      if (event.type === "text") pieces.push(event.text);
      else assert.deepEqual(event.cited, source === null ? [] : [chunks[source]]);
    }
    assert.deepEqual(pieces, deltas);
    assert.equal(pieces.join(""), answer);
  });
}
