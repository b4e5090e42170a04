import assert from "node:assert/strict";
import { test } from "node:test";

import { sharedVectors } from "../testing/vectors.js";
import { tokens } from "./tokens.js";

const { cases } = sharedVectors("tokens") as { cases: { text: string; tokens: string[] }[] };

for (const { text, tokens: expected } of cases) {
  test(`tokens of ${JSON.stringify(text.slice(0, 60))}`, () => {
    const found = tokens(text).map((token) => Buffer.from(token, "latin1").toString());
    assert.deepEqual(found, expected);
  });
}

test("a token is cut at a byte, whatever character it is part of", () => {
  const rest = "ж".repeat(16_383);
  const [a, b, c] = tokens(`x${rest}жa x${rest}зa x${rest}aж`);
  assert.equal(a?.length, 32_768);
  assert.equal(a, b);
  assert.notEqual(a, c);
});
