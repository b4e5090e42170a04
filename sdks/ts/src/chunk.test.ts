import assert from "node:assert/strict";
import { test } from "node:test";

import { chunk } from "./chunk.js";
import { sharedVectors } from "./testing/vectors.js";

const { cases } = sharedVectors("chunking") as {
  cases: { text: [piece: string, times: number][]; bytes: number[]; note?: string }[];
};

for (const { text: pieces, bytes, note } of cases) {
  test(`chunks: ${note ?? JSON.stringify(pieces)}`, () => {
    const text = pieces.map(([piece, times]) => piece.repeat(times)).join("");
    const chunks = chunk(text);
    assert.deepEqual(
      chunks.map((piece) => Buffer.byteLength(piece)),
      bytes,
    );
    assert.equal(chunks.join(""), text);
  });
}
