/** The mode conversation, as a brain serves it. */

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { afterEach, beforeEach, test } from "node:test";

import type { Brain } from "../brain/brain.js";
import type { BrainStore } from "../brain/store.js";
import type { Embedder } from "../embed/embed.js";
import { FeatureHash } from "../embed/featureHash.js";
import type { Filters } from "../index/filter.js";
import { ingest, note, openStore, pathsOf, retrieve } from "../testing/brains.js";
import { temporaryFolder } from "../testing/daemon.js";

const mode = "conversation";

let root: string;
let store: BrainStore | undefined;

beforeEach(() => {
  root = temporaryFolder();
});

afterEach(async () => {
  await store?.close();
  rmSync(root, { recursive: true });
});

function otherModel(): Embedder {
  return Object.assign(new FeatureHash(), { model: "other" });
}

const embedders: [name: string, embedder: Embedder | null, compares: boolean][] = [
  ["no model", null, false],
  ["the feature hash", new FeatureHash(), false],
  ["another model", otherModel(), true],
];

function brainWith(embedder: Embedder | null): Promise<Brain> {
  store = openStore(root, embedder);
  return store.create("b", undefined);
}

function turn(session: string, index: number, text: string) {
  const metadata = { session_id: session, index };
  return note(`raw/${session}/${index}.md`, text, { metadata });
}

/** Two sessions, and a note, which is no turn. */
async function holiday(embedder: Embedder | null): Promise<Brain> {
  const brain = await brainWith(embedder);
  const said = [
    "Where did you go?",
    "To the lake, with my sister.",
    "Lovely!",
    "Yes.",
    "No.",
    "So.",
  ];
  await ingest(brain, [
    note("note.md", "The roof needs paint."),
    ...[...said, "Well."].map((text, index) => turn("s1", index, text)),
    turn("s2", 0, "My bicycle has a flat tyre."),
  ]);
  return brain;
}

test("neighbours of a word are found, also with negative scores", async () => {
  const brain = await holiday(null);
  const { chunks } = await retrieve(brain, "lake", { mode });
  const found = chunks.map(({ path }) => path);
  assert.deepEqual(
    found.toSorted(),
    [0, 1, 2, 3, 4, 5].map((n) => `raw/s1/${n}.md`),
  );
  assert.equal(found[0], "raw/s1/1.md");
  assert.ok((chunks.at(-1)?.score ?? 0) < 0);
  assert.deepEqual(
    await pathsOf(brain, "lake", { mode, topK: 2, candidateK: 1 }),
    found.slice(0, 2),
  );
});

const filtered: [filters: Filters, allows: (path: string) => boolean][] = [
  [{ sessionIds: ["s1"] }, (path) => path.startsWith("raw/s1/")],
  [{ sessionIds: ["s2"] }, (path) => path.startsWith("raw/s2/")],
  [{ paths: ["raw/s1/4.md"] }, (path) => path === "raw/s1/4.md"],
  [{ pathPrefix: "note" }, (path) => path === "note.md"],
  [{ tags: [] }, () => false],
];

for (const [name, embedder, compares] of embedders) {
  test(`vectors are compared if auto compares them: ${name}`, async () => {
    const brain = await holiday(embedder);
    const tuning = { poolFactor: 9, alpha: 0.1 };
    const { chunks, trace } = await retrieve(brain, "lake", { mode, topK: 10, tuning });
    assert.equal(chunks.length, compares ? 9 : 6);
    assert.deepEqual(trace, {
      requestedMode: mode,
      effectiveMode: mode,
      embedderUsed: compares,
      reranked: false,
      fellBackToBm25: false,
      candidateK: 90,
      searchMs: trace.searchMs,
      tuning: {},
    });
  });

  test(`a filter changes no score: ${name}`, async () => {
    const brain = await holiday(embedder);
    const { chunks } = await retrieve(brain, "lake", { mode });
    for (const [filters, allows] of filtered) {
      const found = await retrieve(brain, "lake", { mode, filters });
      assert.deepEqual(
        found.chunks,
        chunks.filter(({ path }) => allows(path)),
      );
    }
  });

  test(`without turns, auto is served: ${name}`, async () => {
    const brain = await brainWith(embedder);
    await ingest(brain, [note("a.md", "A lake."), note("b.md", "A roof by the lake.")]);
    for (const query of ["lake roof", "?"]) {
      const tuning = { alpha: 0.3 };
      const auto = await retrieve(brain, query, { mode: "auto", tuning });
      const { chunks, trace } = await retrieve(brain, query, { mode, tuning });
      assert.deepEqual(chunks, auto.chunks);
      const fellBackToBm25 = !compares;
      const { searchMs } = trace;
      assert.deepEqual(trace, { ...auto.trace, requestedMode: mode, fellBackToBm25, searchMs });
    }
  });
}

test("the mode follows the turns of the brain", async () => {
  const brain = await brainWith(null);
  const served = async () => {
    const modes = await Promise.all(["kite", "?"].map((query) => retrieve(brain, query, { mode })));
    return modes.map(({ trace }) => trace.effectiveMode);
  };
  await ingest(brain, [note("a.md", "kite")]);
  assert.deepEqual(await served(), ["bm25", "bm25"]);
  await ingest(brain, [turn("s", 0, "kite")]);
  assert.deepEqual(await served(), [mode, mode]);
  await ingest(brain, [turn("s", 0, "")]);
  assert.deepEqual(await served(), ["bm25", "bm25"]);
  await ingest(brain, [turn("s", 0, "kite")]);
  await ingest(brain, [note("raw/s/0.md", "kite")]);
  assert.deepEqual(await served(), ["bm25", "bm25"]);
});

test("turns that are stored while the query is embedded decide the mode", async () => {
  const embedder = otherModel();
  const brain = await brainWith(embedder);
  await ingest(brain, [note("a.md", "kite")]);
  const embed = embedder.embed.bind(embedder);
  let stored = false;
  embedder.embed = async (texts, signal) => {
    const isQuery = !stored;
    stored = true;
    if (isQuery) await ingest(brain, [turn("s", 0, "kite")]);
    return embed(texts, signal);
  };
  const { chunks, trace } = await retrieve(brain, "kite", { mode });
  assert.equal(trace.effectiveMode, mode);
  assert.equal(chunks.length, 2);
});

test("an embedder that returns no vector for a query is not served by words alone", async () => {
  const embedder = otherModel();
  const brain = await brainWith(embedder);
  await ingest(brain, [turn("s", 0, "kite")]);
  embedder.embed = () => Promise.resolve([]);
  for (const served of [mode, "hybrid", "semantic"] as const) {
    await assert.rejects(retrieve(brain, "kite", { mode: served }), { code: "bad_gateway" });
  }
});
