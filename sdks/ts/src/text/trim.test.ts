import assert from "node:assert/strict";
import { test } from "node:test";

import { parseFrontMatter } from "../frontmatter.js";
import { trimCharacters } from "./trim.js";

test("trims both ends and nothing inside", () => {
  assert.equal(trimCharacters("  a  b\t ", " \t"), "a  b");
  assert.equal(trimCharacters(" \t ", " \t"), "");
  assert.equal(trimCharacters("", " "), "");
});

test("a long run of blanks takes linear time", () => {
  const blanks = " ".repeat(1_000_000);
  const started = performance.now();
  assert.equal(trimCharacters(`x${blanks}y`, " "), `x${blanks}y`);
  assert.equal(parseFrontMatter(`---\nkey: x${blanks}y\n---\nz`).text, "z");
  // The regular expression took minutes for it.
  assert.ok(performance.now() - started < 20_000);
});
