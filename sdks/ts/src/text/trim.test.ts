import assert from "node:assert/strict";
import { test } from "node:test";

import { parseFrontMatter } from "../frontmatter.js";
import { growth } from "../testing/growth.js";
import { trimCharacters } from "./trim.js";

test("trims both ends and nothing inside", () => {
  assert.equal(trimCharacters("  a  b\t ", " \t"), "a  b");
  assert.equal(trimCharacters(" \t ", " \t"), "");
  assert.equal(trimCharacters("", " "), "");
});

test("a long run of blanks takes linear time", async () => {
  // A regular expression takes quadratic time for it.
  const trim = (size: number) => {
    const run = `x${" ".repeat(size)}y`;
    assert.equal(trimCharacters(run, " "), run);
    assert.equal(parseFrontMatter(`---\nkey: ${run}\n---\nz`).text, "z");
  };
  assert.ok((await growth(trim, 4000)) < 1.5);
});
