import assert from "node:assert/strict";
import { test } from "node:test";

import { epochSeconds } from "../moment.js";
import { sharedVectors } from "../testing/vectors.js";
import { byDate, type Recency, type Temporal } from "./dates.js";

const vectors = sharedVectors("dates") as {
  moments: { text: string; seconds: number | null }[];
  cases: {
    hits: [score: number, date: string | null][];
    recency: Recency | null;
    temporal: Temporal | null;
    scores: number[];
  }[];
};

for (const { text, seconds } of vectors.moments) {
  test(`${JSON.stringify(text)} is ${seconds} s from 1970`, () => {
    assert.equal(epochSeconds(text) ?? null, seconds);
  });
}

for (const [number, { hits, recency, temporal, scores }] of vectors.cases.entries()) {
  test(`scores by date, ${number}`, () => {
    const scored = byDate(
      hits.map(([score], slot) => ({ slot, score })),
      (slot) => epochSeconds(hits[slot]?.[1] ?? ""),
      { recency: recency ?? undefined, temporal: temporal ?? undefined },
    );
    assert.deepEqual(
      scored,
      scores.map((score, slot) => ({ slot, score })),
    );
  });
}
