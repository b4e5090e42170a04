import assert from "node:assert/strict";
import { test } from "node:test";

import { decodeObject, encode } from "./json.js";

test("integers beyond 2^53 are bigints, other numbers are not", () => {
  const text =
    '{"a":9007199254740993,"b":-18446744073709551616,"c":1e+300,"d":0.10000000000000001,"e":"1234567890123456"}';
  const object = decodeObject(Buffer.from(text));
  assert.deepEqual(object, {
    a: 9007199254740993n,
    b: -18446744073709551616n,
    c: 1e300,
    d: 0.1,
    e: "1234567890123456",
  });
  assert.match(encode(object), /"a":9007199254740993,"b":-18446744073709551616,/);
});

for (const text of [
  "",
  "[]",
  "null",
  '{"a":',
  '{"a":1}{}',
  '{"a":1234567890123456}x',
  "\ufeff{}",
]) {
  test(`is not an object: ${JSON.stringify(text)}`, () => {
    assert.throws(() => decodeObject(Buffer.from(text)), { name: "CallError", kind: "protocol" });
  });
}

test("text that is not UTF-8 is not JSON", () => {
  assert.throws(() => decodeObject(Buffer.from('{"a":"\xff"}', "latin1")), { kind: "protocol" });
});
