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

test("words as long as a request are not kept", (t) => {
  // eslint-disable-next-line @typescript-eslint/unbound-method -- called with its `this`
  const { set } = Map.prototype;
  const kept: unknown[] = [];
  t.mock.method(
    Map.prototype,
    "set",
    function (this: Map<unknown, unknown>, ...entry: [unknown, unknown]) {
      kept.push(entry[0]);
      return set.apply(this, entry);
    },
  );
  const long = "q".repeat(2 ** 20);
  const [longest, shorter] = ["w".repeat(64), "w".repeat(65)];
  assert.equal(tokens(`${long} ${shorter} ${longest}`).length, 3);
  t.mock.restoreAll();
  assert.deepEqual(kept, [longest]);
});
