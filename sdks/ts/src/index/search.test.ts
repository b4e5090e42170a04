/** Searches that take several turns of the event loop. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";

import { FeatureHash } from "../embed/featureHash.js";
import { indexed, openIndex, slowDown } from "../testing/indexes.js";
import { type Index, LEAST_WASTE } from "./index.js";
import type { Search } from "./search.js";

const DOCUMENTS = 5000;

/** A letter for the contract, and a separator for SQLite's tokenizer. */
const LETTER = "\u1cf2";

async function filledIndex(): Promise<Index> {
  const index = await openIndex();
  const paths = Array.from({ length: DOCUMENTS }, (_, n) => `${n}.md`);
  index.apply(await Promise.all(paths.map((path) => indexed(path, "zebra lion"))));
  return index;
}

async function countTurns(signal: AbortSignal): Promise<number> {
  let turns = 0;
  for (; !signal.aborted; turns++) await nextTurn();
  return turns;
}

const [vector = Float32Array.of()] = await new FeatureHash().embed(["zebra"]);

const searches: [name: string, run: (search: Search, signal?: AbortSignal) => Promise<unknown>][] =
  [
    ["keyword", (search, signal) => search.keyword(10, signal)],
    ["semantic", (search, signal) => search.semantic(vector, 10, "cosine", signal)],
    ["conversation", (search, signal) => search.conversation(vector, 10, signal)],
  ];

for (const [name, run] of searches) {
  test(`a ${name} search gives others their turn`, async (t) => {
    const index = await filledIndex();
    slowDown(t);
    const controller = new AbortController();
    const turns = countTurns(controller.signal);
    await run(index.search("zebra"));
    controller.abort();
    assert.ok((await turns) >= 4);
  });

  test(`a ${name} search ends with its signal`, async (t) => {
    const index = await filledIndex();
    slowDown(t);
    const controller = new AbortController();
    const end = run(index.search("zebra"), controller.signal);
    controller.abort(new Error("gone"));
    await assert.rejects(end, /gone/);
  });

  for (const query of ["zebra", `zebra${LETTER}lion`]) {
    test(`a ${name} search for ${query} sees the index as it was`, async (t) => {
      const index = await filledIndex();
      const before = await run((await filledIndex()).search(query));
      slowDown(t);
      const search = index.search(query);
      const running = run(search);
      index.apply([await indexed("!.md", "zebra lion")]);
      // All that is searched is replaced, so often that the slots get other numbers.
      const others = ["a.md", "b.md"].map((path) => indexed(path, "zebra zebra lion lion"));
      index.apply(await Promise.all(others), [
        "!.md",
        ...Array.from({ length: DOCUMENTS }, (_, n) => `${n}.md`),
      ]);
      for (let n = 0; n < 2 * LEAST_WASTE; n++) index.apply(await Promise.all(others));
      assert.deepEqual(await running, before);
      assert.equal(search.chunk(7).path, "7.md");
      assert.equal(index.counts().documents, 2);
    });
  }
}
