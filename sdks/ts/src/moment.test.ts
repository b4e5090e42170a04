import assert from "node:assert/strict";
import { test } from "node:test";

import { isDateOrDateTime, rfc3339 } from "./moment.js";

const moments = [
  "2024-02-29",
  "0050-01-01",
  "2024-01-01T00:00:00Z",
  "2024-01-01t23:59:59.123456789+05:30",
  "2024-01-01T00:00:00-00:00",
];
const others = [
  "",
  "yesterday",
  "2023-02-29",
  "2024-13-01",
  "2024-1-1",
  "2024-01-01\n",
  "2024-01-01T00:00:00",
  "2024-01-01 00:00:00Z",
  "2024-01-01T24:00:00Z",
  "2024-01-01T00:00Z",
  "2024-01-01T00:00:00.Z",
  "2024-01-01T00:00:00+25:00",
];

for (const text of moments) {
  test(`accepts ${text}`, () => {
    assert.ok(isDateOrDateTime(text));
  });
}

for (const text of others) {
  test(`rejects ${JSON.stringify(text)}`, () => {
    assert.ok(!isDateOrDateTime(text));
  });
}

test("a time that RFC 3339 cannot express becomes the nearest one that it can", () => {
  assert.equal(rfc3339(-1e14), "0001-01-01T00:00:00.000Z");
  assert.equal(rfc3339(1e16), "9999-12-31T23:59:59.000Z");
  assert.equal(rfc3339(1500), "1970-01-01T00:00:01.500Z");
});
