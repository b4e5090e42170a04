import assert from "node:assert/strict";
import { test } from "node:test";

import { hasNumber, isFinite, parseExactly, stringifyExactly } from "./exactJson.js";

const numbers = [
  "9007199254740993",
  "-9007199254740993",
  "0.1000000000000000055511151231257827",
  "0.10000000000000001",
  "123456789012345.67",
  "4.9e-324",
  "5e-324",
  "1e-400",
  "1E+308",
  "1.7976931348623157e308",
  "1".repeat(309),
];

for (const number of numbers) {
  test(`${number} is kept as it is written`, () => {
    const text = `{"a":[${number}],"b":"c"}`;
    assert.equal(stringifyExactly(parseExactly(text) as object), text);
  });
}

test("numbers that a float64 holds are plain numbers", () => {
  const text = '{"a":[5.0,-0,0.1,42,123456789012345]}';
  assert.deepEqual(parseExactly(text), { a: [5, -0, 0.1, 42, 123456789012345] });
  assert.equal(
    stringifyExactly(parseExactly(text) as object),
    '{"a":[5,0,0.1,42,123456789012345]}',
  );
});

test("the last of equal keys counts, whatever their values", () => {
  assert.deepEqual(parseExactly('{"a":1e0,"a":"1e5 ","a":null}'), { a: null });
});

test("malformed JSON is a SyntaxError, with and without long numbers", () => {
  assert.throws(() => parseExactly("{"), SyntaxError);
  assert.throws(() => parseExactly('{"a":1e5'), SyntaxError);
});

test("numbers are found at any depth", () => {
  assert.ok(hasNumber({ a: [{ b: 0 }] }));
  assert.ok(!hasNumber({ a: [{ b: "0" }, null, true] }));
  assert.ok(!isFinite(parseExactly('{"a":[{"b":1e999}]}')));
  assert.ok(!isFinite(parseExactly(`[-${"9".repeat(400)}]`)));
  assert.ok(isFinite(parseExactly('{"a":[1e308,"1e999",1e-999]}')));
  assert.ok(isFinite(Array.from({ length: 500_000 }, () => 1)));
});
