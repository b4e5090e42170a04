import assert from "node:assert/strict";
import { test } from "node:test";

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

test("no pattern is slow", () => {
  const fit = compileGlob("*a".repeat(5000) + "*b");
  const among = compileGlob("*a".repeat(100) + "*b*");
  const started = performance.now();
  for (let i = 0; i < 1000; i++) assert.ok(!fit("a".repeat(250)) && !among("a".repeat(250)));
  assert.ok(performance.now() - started < 10_000);
});
