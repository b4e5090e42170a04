import assert from "node:assert/strict";
import { test } from "node:test";

import { sharedVectors } from "../testing/vectors.js";
import { FeatureHash, fnv1a } from "./featureHash.js";

const { fnv1a32, cases } = sharedVectors("hash") as {
  fnv1a32: { text: string; hash: number }[];
  cases: { text: string; values: Record<string, number> }[];
};

for (const { text, hash } of fnv1a32) {
  test(`FNV-1a of ${JSON.stringify(text)}`, () => {
    assert.equal(fnv1a(text), hash);
  });
}

test("FNV-1a hashes the UTF-8 bytes", () => {
  assert.equal(fnv1a("é"), fnv1a("\u00e9"));
  assert.equal(fnv1a("a東", fnv1a("é ")), fnv1a("é a東"));
});

for (const { text, values } of cases) {
  test(`feature hash of ${JSON.stringify(text.slice(0, 30))}`, async () => {
    const [vector = []] = await new FeatureHash().embed([text]);
    const present = Array.from(vector, (value, index) => [String(index), value] as const);
    assert.deepEqual(Object.fromEntries(present.filter(([, value]) => value !== 0)), values);
  });
}
