import assert from "node:assert/strict";
import { test } from "node:test";

import { parseFrontMatter } from "./frontMatter.js";
import { trimmed } from "./trim.js";

test("both margins are taken off, and nothing inside", () => {
  assert.equal(trimmed("  a  b\t ", " \t"), "a  b");
  assert.equal(trimmed(" \t ", " \t"), "");
  assert.equal(trimmed("", " "), "");
});

test("a long run of blanks does not hold the daemon", () => {
  const blanks = " ".repeat(1_000_000);
  const started = performance.now();
  assert.equal(trimmed(`x${blanks}y`, " "), `x${blanks}y`);
  assert.equal(parseFrontMatter(`---\nkey: x${blanks}y\n---\nz`).text, "z");
  // The regular expression took minutes for it.
  assert.ok(performance.now() - started < 20_000);
});
