import assert from "node:assert/strict";
import { test } from "node:test";

import { Problem } from "../problem.js";
import { Parameters } from "./parameters.js";

const read: [query: string, path: string][] = [
  ["path=a/b.md", "a/b.md"],
  ["x=1&path=a%2Fb%2emd", "a/b.md"],
  ["path=a+b%20c%2B", "a b c+"],
  ["path=%E2%82%AC", "€"],
  ["path=\u00e2\u0082\u00ac", "€"],
  ["p%61th=a=b", "a=b"],
  ["&&path=a&", "a"],
  ["path=a?b", "a?b"],
  ["x=1&x=2&path=a", "a"],
];

for (const [query, path] of read) {
  test(`parses ${query}`, () => {
    assert.equal(new Parameters(`/documents?${query}`).path("path"), path);
  });
}

const refused = [
  "",
  "?",
  "?path",
  "?path=",
  "?PATH=a",
  "?path=a&path=a",
  "?path=a&p%61th=b",
  "?path=%",
  "?path=%4",
  "?path=%zz",
  "?path=%u0041",
  "?path=%ff",
  "?path=%C0%AF",
  "?path=%ED%A0%80",
  "?path=a&x=%",
  "?path=..",
  "?path=%2e%2e/a",
  "?path=/a",
  "?path=a//b",
  "?path=a%00",
  "?path=a%5Cb",
  `?path=${"a".repeat(251)}`,
];

for (const query of refused) {
  test(`rejects ${query.slice(0, 30)}`, () => {
    assert.throws(
      () => new Parameters(`/documents${query}`).path("path"),
      (error) => error instanceof Problem && error.status === 400,
    );
  });
}

test("flags are true or false, and a folder may be missing", () => {
  const parameters = new Parameters("/documents?yes=true&no=false&empty=&odd=1&dir=");
  assert.equal(parameters.flag("yes"), true);
  assert.equal(parameters.flag("no"), false);
  assert.equal(parameters.flag("absent"), false);
  for (const name of ["empty", "odd"]) assert.throws(() => parameters.flag(name), Problem);
  assert.equal(parameters.folder("dir"), "");
  assert.equal(parameters.folder("absent"), "");
});
