import assert from "node:assert/strict";
import { test } from "node:test";

import { growth } from "../testing/growth.js";
import { compileGlob } from "./glob.js";

const cases: [pattern: string, fitting: string[], others: string[]][] = [
  ["", [], ["a"]],
  ["*", ["a", "abc"], []],
  ["**", ["a", "abc"], []],
  ["*.md", [".md", "a.md", "a.md.md"], ["a.mdx", "md", "a.MD"]],
  ["a*", ["a", "ab"], ["ba"]],
  ["a*a", ["aa", "aba"], ["a", "ab"]],
  ["?", ["a", "ä", "😀"], ["ab", "a\u0308"]],
  ["??.md", ["ab.md"], ["a.md", "abc.md"]],
  ["*?", ["a", "ab"], []],
  ["a*b?d*e", ["abcde", "axxbxdxe", "abbbde"], ["abde", "axe", "abcdf"]],
  ["[ab]", ["[ab]"], ["a"]],
  ["{a,b}", ["{a,b}"], ["a"]],
  ["a.b", ["a.b"], ["axb"]],
  ["\\*", ["\\", "\\a"], ["*"]],
];

for (const [pattern, fitting, others] of cases) {
  test(`glob ${JSON.stringify(pattern)}`, () => {
    const fit = compileGlob(pattern);
    assert.deepEqual([...fitting, ...others].filter(fit), fitting);
  });
}

test("no pattern is slow", async () => {
  const fit = compileGlob("*a".repeat(5000) + "*b");
  assert.ok(!fit("a".repeat(250)));
  // A regular expression takes the square of this at least, and never ends with a hundred stars.
  const among = compileGlob("*a*b*");
  const match = (size: number) => {
    assert.ok(!among("a".repeat(size)));
  };
  assert.ok((await growth(match, 500)) < 1.5);
  const many = compileGlob("*a".repeat(100) + "*b*");
  assert.ok(!many("a".repeat(250)));
});
