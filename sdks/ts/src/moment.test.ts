import assert from "node:assert/strict";
import { test } from "node:test";

import { isDateOrDateTime } from "./moment.js";

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
