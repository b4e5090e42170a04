/** What a brain promises of its rankings. */

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { afterEach, beforeEach, test } from "node:test";

import type { Brain } from "../brain/brain.js";
import type { BrainStore } from "../brain/store.js";
import { FeatureHash } from "../embed/featureHash.js";
import type { Filters } from "../index/filter.js";
import { ingest, note, openStore, pathsOf, retrieve } from "../testing/brains.js";
import { temporaryFolder } from "../testing/daemon.js";
import type { Mode } from "./plan.js";

const MODES = ["bm25", "semantic", "hybrid"] as const;

let root: string;
let store: BrainStore;
let brain: Brain;

beforeEach(async () => {
  root = temporaryFolder();
  store = openStore(root);
  brain = await store.create("b", undefined);
});

afterEach(async () => {
  await store.close();
  rmSync(root, { recursive: true });
});

test("ingesting the same path again replaces the document", async () => {
  await ingest(brain, [note("a.md", "old zebra")]);
  await ingest(brain, [note("a.md", "new giraffe"), note("b.md", "zebra crossing")]);
  assert.deepEqual(await pathsOf(brain, "zebra"), ["b.md"]);
  assert.deepEqual(await pathsOf(brain, "giraffe"), ["a.md"]);
  assert.equal(brain.counts().documents, 2);
});

test("the last document of a repeated path in a batch wins", async () => {
  await ingest(brain, [note("a.md", "zebra"), note("a.md", "giraffe")]);
  assert.deepEqual(await pathsOf(brain, "zebra giraffe"), ["a.md"]);
  assert.deepEqual(await pathsOf(brain, "zebra"), []);
});

test("two documents may share a title", async () => {
  const documents = [note("a.md", "zebra", { title: "T" }), note("b.md", "zebra", { title: "T" })];
  await ingest(brain, documents);
  assert.deepEqual(await pathsOf(brain, "zebra"), ["a.md", "b.md"]);
});

for (const mode of MODES) {
  test(`ties are broken by path: ${mode}`, async () => {
    const paths = ["b.md", "ä.md", "a.md", "Z.md", "a/b.md", "\uffee.md", "😀.md"];
    await ingest(
      brain,
      paths.map((path) => note(path, "the same words")),
    );
    const expected = paths.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    assert.deepEqual(await pathsOf(brain, "same words", { mode }), expected);
    const first = await pathsOf(brain, "same words", { mode, topK: 3 });
    assert.deepEqual(first, expected.slice(0, 3));
  });

  test(`composed and decomposed spellings rank alike: ${mode}`, async () => {
    await ingest(brain, [note("a.md", "Caf\u00e9 Zo\u00eb"), note("b.md", "Bar Zoe")]);
    const composed = await pathsOf(brain, "caf\u00e9 zo\u00eb", { mode });
    assert.deepEqual(await pathsOf(brain, "cafe\u0301 zoe\u0308", { mode }), composed);
    assert.equal(composed[0], "a.md");
  });

  test(`a query without terms finds nothing: ${mode}`, async () => {
    await ingest(brain, [note("a.md", "zebra")]);
    assert.deepEqual(await pathsOf(brain, "? !", { mode }), []);
  });
}

for (const mode of ["bm25", "semantic"] as const) {
  test(`the order of ingest does not matter: ${mode}`, async () => {
    const documents = Array.from({ length: 40 }, (_, n) =>
      note(`${n}.md`, `note ${n} zebra ${"giraffe ".repeat(n % 5)}`),
    );
    await ingest(brain, documents);
    const other = await store.create("c", undefined);
    for (const document of documents.reverse()) await ingest(other, [document]);
    const query = "giraffe note zebra";
    const [one, two] = await Promise.all([brain, other].map((b) => retrieve(b, query, { mode })));
    assert.deepEqual(one?.chunks, two?.chunks);
  });
}

test("reused slots do not mix documents", async () => {
  const animals = Array.from({ length: 5 }, (_, n) => note(`${n}.md`, `animal${n}`));
  await ingest(brain, animals);
  await ingest(brain, [note("2.md", "plant"), note("9.md", "animal2")]);
  for (const mode of MODES) {
    assert.equal((await pathsOf(brain, "animal2", { mode }))[0], "9.md");
    assert.equal((await pathsOf(brain, "plant", { mode }))[0], "2.md");
  }
});

test("a query uses its first 256 terms", async () => {
  await ingest(brain, [note("a.md", "word255"), note("b.md", "word256")]);
  const query = Array.from({ length: 400 }, (_, n) => `word${n}`).join(" ");
  assert.deepEqual(await pathsOf(brain, query), ["a.md"]);
});

test("query syntax has no meaning", async () => {
  await ingest(brain, [note("a.md", "zebra"), note("b.md", "near")]);
  assert.deepEqual(await pathsOf(brain, 'NOT "zebra* AND ('), ["a.md"]);
});

test("brains do not affect each other's scores", async () => {
  await ingest(brain, [note("a.md", "zebra"), note("b.md", "giraffe")]);
  const before = (await retrieve(brain, "zebra")).chunks;
  const other = await store.create("c", undefined);
  await ingest(other, [note("a.md", "zebra zebra"), note("z.md", "zebra")]);
  assert.deepEqual((await retrieve(brain, "zebra")).chunks, before);
});

const filtered: [filters: Filters, paths: string[]][] = [
  [{ pathPrefix: "raw" }, ["raw/a.md", "raw_/b.md"]],
  [{ scope: "raw" }, ["raw/a.md"]],
  [{ scope: "global" }, ["memory/global/c.md"]],
  [{ scope: "project" }, ["memory/project/p/d.md", "memory/project/pq/e.md"]],
  [{ project: "p" }, ["memory/project/p/d.md"]],
  [{ paths: ["raw/a.md", "nowhere"] }, ["raw/a.md"]],
  [{ paths: [] }, []],
  [{ tags: ["x", "z"] }, ["raw/a.md"]],
  [{ tags: ["y"], pathPrefix: "raw/" }, ["raw/a.md"]],
  [{ sessionIds: ["s2", "s1"] }, ["memory/global/c.md", "raw/a.md"]],
  [{ sessionIds: [] }, []],
];

for (const [filters, paths] of filtered) {
  test(`filters ${JSON.stringify(filters)}`, async () => {
    await ingest(brain, [
      note("raw/a.md", "zebra", { tags: ["x", "y"], metadata: { session_id: "s1" } }),
      note("raw_/b.md", "zebra", { tags: ["y"], metadata: { session_id: 1 } }),
      note("memory/global/c.md", "---\nsession_id: s2\n---\nzebra"),
      note("memory/project/p/d.md", "zebra"),
      note("memory/project/pq/e.md", "zebra"),
    ]);
    for (const mode of MODES) {
      assert.deepEqual(await pathsOf(brain, "zebra", { mode, filters }), paths);
    }
  });
}

test("a long document is found by its chunks", async () => {
  const text = `${"filler ".repeat(20_000)}\n\nzebra`;
  await ingest(brain, [note("a.md", text)]);
  const [found] = (await retrieve(brain, "zebra")).chunks;
  assert.ok(found);
  assert.match(found.chunkId, /^[0-9a-f]{32}#\d+$/);
  assert.ok(text.includes(found.text) && found.text.length < 8193);
});

const fallbacks: [mode: Mode, effective: Mode, fellBack: boolean][] = [
  ["auto", "bm25", false],
  ["bm25", "bm25", false],
  ["semantic", "bm25", true],
  ["hybrid", "bm25", true],
  ["hybrid-rerank", "bm25", true],
];

test("without an embedder the trace reports the fallback", async () => {
  await store.close();
  store = openStore(root, null);
  const plain = await store.get("b");
  for (const [mode, effective, fellBack] of fallbacks) {
    const { trace } = await retrieve(plain, "zebra", { mode });
    assert.equal(trace.requestedMode, mode);
    assert.equal(trace.effectiveMode, effective);
    assert.equal(trace.fellBackToBm25, fellBack);
    assert.equal(trace.embedderUsed, false);
  }
});

for (const [model, effective] of [
  ["fh256-1", "bm25"],
  ["other", "hybrid"],
] as const) {
  test(`auto with the model ${model} is ${effective}`, async () => {
    await store.close();
    store = openStore(root, Object.assign(new FeatureHash(), { model }));
    const { trace } = await retrieve(await store.get("b"), "zebra", { mode: "auto" });
    assert.equal(trace.effectiveMode, effective);
    assert.equal(trace.embedderUsed, effective === "hybrid");
    assert.equal(trace.fellBackToBm25, false);
  });
}
