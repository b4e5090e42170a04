import assert from "node:assert/strict";
import { test } from "node:test";

import { parseFrontMatter } from "./frontMatter.js";

const split: [content: string, text: string, metadata: Record<string, string | string[]>][] = [
  ["---\nkey: value\n---\nbody", "body", { key: "value" }],
  ["---\r\nkey: value\r\n---\r\nbody", "body", { key: "value" }],
  ["---\nlist: [a, 'b c']\nn: 3\n---\n", "", { list: ["a", "b c"], n: "3" }],
  ["---\nempty: []\nblank:\n---\nx", "x", { empty: [], blank: "" }],
  ["---\n---\nbody", "body", {}],
  ['---\nq: "a: b"\n---\nx', "x", { q: "a: b" }],
  ["---\nq: '\nlone: \"x'\n---\nx", "x", { q: "'", lone: "\"x'" }],
  ["---\nkey:value\nkey:  last\t\n---", "", { key: "last" }],
];

for (const [content, text, metadata] of split) {
  test(`front matter of ${JSON.stringify(content)}`, () => {
    assert.deepEqual(parseFrontMatter(content), { text, metadata });
  });
}

const plain = [
  "plain",
  "---",
  "---\nkey: value\nbody",
  "---\nno colon\n---\nbody",
  "---\n  nested: x\n---\nbody",
  "text\n---\nkey: value\n---\n",
  "----\nkey: value\n----\n",
  "\ufeff---\nkey: value\n---\nbody",
];

for (const content of plain) {
  test(`no front matter in ${JSON.stringify(content)}`, () => {
    assert.deepEqual(parseFrontMatter(content), { text: content, metadata: {} });
  });
}

test("a key may have any name, even __proto__", () => {
  const { metadata } = parseFrontMatter("---\n__proto__: x\n---\n");
  assert.deepEqual(Object.entries(metadata), [["__proto__", "x"]]);
});

test("unterminated front matter is parsed in linear time", { timeout: 60_000 }, () => {
  const content = `---\n${"k: v\n".repeat(400_000)}`;
  assert.equal(parseFrontMatter(content).text, content);
});
