import assert from "node:assert/strict";
import { test } from "node:test";

import { Timers } from "./timers.js";

test("values that are given to a timer reach it, by time and when it is let expire", async (t) => {
  const timers = new Timers(t);
  // short limit: what is tested
  const byTime = new Promise((resolve) => setTimeout(resolve, 0, "value"));
  assert.equal(await byTime, "value");
  let timer;
  const byTest = new Promise((resolve) => {
    // short limit: never reached
    timer = setTimeout(resolve, 600_000, "value");
  });
  timers.expire(600_000);
  assert.equal(await byTest, "value");
  clearTimeout(timer);
});
