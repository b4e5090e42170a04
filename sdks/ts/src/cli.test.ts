import assert from "node:assert/strict";
import { test } from "node:test";

import { parseCommand, UsageError } from "./cli.js";

test("parses a command", () => {
  const argv = ["serve", "--addr", "[::1]:0", "--root", "state", "--auth-token", "t"];
  const expected = { host: "::1", port: 0, root: "state", authToken: "t" };
  assert.deepEqual(parseCommand(argv, "home"), expected);
});

test("defaults to the loopback interface and JB_HOME", () => {
  const expected = { host: "127.0.0.1", port: 18850, root: "home", authToken: undefined };
  assert.deepEqual(parseCommand(["serve"], "home"), expected);
});

test("help is not an error", () => {
  assert.equal(parseCommand(["--help"], undefined), undefined);
});

const rejected = [
  [],
  ["run"],
  ["serve", "again"],
  ["serve", "--nonsense"],
  ["serve", "--addr", "localhost"],
  ["serve", "--addr", ":80"],
  ["serve", "--addr", "localhost:65536"],
  ["serve", "--addr", "localhost:x"],
];

for (const argv of rejected) {
  test(`rejects: ${argv.join(" ")}`, () => {
    assert.throws(() => parseCommand(argv, "home"), UsageError);
  });
}

test("requires a state folder", () => {
  assert.throws(() => parseCommand(["serve"], undefined), UsageError);
});
