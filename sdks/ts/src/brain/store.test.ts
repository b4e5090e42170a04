/** Files on disk, and an index that follows them. */

import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";

import type { Embedder } from "../embed/embed.js";
import { FeatureHash } from "../embed/featureHash.js";
import { Index } from "../index/index.js";
import { Problem } from "../problem.js";
import { changesLeft, ingest, note, openStore, pathsOf, retrieve } from "../testing/brains.js";
import { temporaryFolder } from "../testing/daemon.js";
import type { BrainStore } from "./store.js";

let root: string;
let store: BrainStore;

beforeEach(() => {
  root = temporaryFolder();
  store = openStore(root);
});

afterEach(async () => {
  await store.close();
  rmSync(root, { recursive: true });
});

async function reopen(embedder?: Embedder | null): Promise<void> {
  await store.close();
  store = openStore(root, embedder);
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const end = () => {
      reject(signal.reason as Error);
    };
    if (signal.aborted) end();
    signal.addEventListener("abort", end);
  });
}

const conflict = (error: unknown) => error instanceof Problem && error.code === "conflict";
const filesBelow = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );

test("documents are stored byte for byte, with a sidecar", async () => {
  const brain = await store.create("b", undefined);
  const content = Buffer.from("---\r\ntitle: T\n---\n\ufeffzebra\0");
  await ingest(brain, [note("a/b.md", content, { tags: ["x"], metadata: { n: 1 } })]);
  assert.deepEqual(readFileSync(join(root, "brains/b/a/b.md")), content);
  assert.deepEqual(JSON.parse(readFileSync(join(root, "meta/b/a/b.md.json"), "utf8")), {
    contentType: "text/markdown",
    tags: ["x"],
    metadata: { n: 1 },
  });
});

test("front matter fills in what the request omits", async () => {
  const brain = await store.create("b", undefined);
  const text = "---\ntitle: Front\ntags: [f]\nkind: note\n---\nzebra";
  const explicit = { title: "Given", tags: ["g"], metadata: { kind: "letter" } };
  await ingest(brain, [note("a.md", text), note("b.md", text, explicit)]);
  const { chunks } = await retrieve(brain, "zebra");
  const seen = chunks.map(({ title, text, metadata }) => [title, text, metadata?.kind]);
  assert.deepEqual(seen, [
    ["Front", "zebra", "note"],
    ["Given", "zebra", "letter"],
  ]);
  assert.deepEqual(await pathsOf(brain, "zebra", { filters: { tags: ["f"] } }), ["a.md"]);
  assert.deepEqual(await pathsOf(brain, "note letter"), []);
});

test("hidden and non-text documents are stored but not found", async () => {
  const brain = await store.create("b", undefined);
  const documents = [note("d/_h.md", "zebra"), note("a.bin", Buffer.from([0xff, 0xfe]))];
  assert.deepEqual([...(await ingest(brain, documents))], [["a.bin", 0]]);
  assert.deepEqual(brain.counts(), { documents: 1, chunks: 0, vectors: 0 });
  assert.deepEqual(await pathsOf(brain, "zebra", { mode: "semantic" }), []);
  assert.ok(existsSync(join(root, "brains/b/d/_h.md")));
});

test("a recreated brain is empty", async () => {
  await ingest(await store.create("b", "first"), [note("a.md", "zebra", { title: "T" })]);
  await store.delete("b");
  const brain = await store.create("b", undefined);
  assert.equal(brain.counts().documents, 0);
  assert.equal(brain.description, undefined);
  assert.deepEqual(await pathsOf(brain, "zebra"), []);
  assert.deepEqual(filesBelow("meta"), []);
  assert.deepEqual(changesLeft(root), []);
});

test("deleting a brain does not touch its neighbour's index", async () => {
  await store.create("b", undefined);
  await ingest(await store.create("b.log", undefined), [note("a.md", "zebra")]);
  await store.delete("b");
  await reopen();
  assert.deepEqual(await pathsOf(await store.get("b.log"), "zebra"), ["a.md"]);
});

test("indexes that are databases, of former daemons, are removed at the start", async () => {
  for (const id of ["b", "b.sqlite"])
    await ingest(await store.create(id, undefined), [note("a.md", "zebra")]);
  await store.close();
  for (const id of ["b", "gone"]) {
    for (const suffix of ["", "-wal", "-shm", "-journal"])
      writeFileSync(join(root, `index/ts/${id}.sqlite${suffix}`), "zebra");
  }
  store = openStore(root);
  const names = filesBelow("index").map(({ name }) => name);
  assert.deepEqual(
    names.filter((name) => /sqlite(?:-|$)|gone/.test(name)),
    [],
  );
  assert.ok(names.includes("b.log") && names.includes("b.sqlite.log"));
});

test("a brain deleted during a request is not found", async () => {
  const waiting: ((vectors: Float32Array[]) => void)[] = [];
  const embed = () => new Promise<Float32Array[]>((resolve) => waiting.push(resolve));
  await reopen({ name: "slow", model: "m", embed });
  const brain = await store.create("b", undefined);
  const ingested = ingest(brain, [note("a.md", "zebra")]);
  await store.delete("b");
  for (const goOn of waiting) goOn([Float32Array.of(1)]);
  await assert.rejects(ingested, { code: "not_found" });
  assert.deepEqual(filesBelow("brains"), []);
});

test("a file and a folder of the same name conflict", async () => {
  const brain = await store.create("b", undefined);
  await ingest(brain, [note("a", "zebra"), note("folder/x", "zebra")]);
  for (const documents of [
    [note("new.md", "giraffe"), note("a/b", "giraffe")],
    [note("new.md", "giraffe"), note("a/b/c", "giraffe")],
    [note("new.md", "giraffe"), note("folder", "giraffe")],
    [note("new.md", "giraffe"), note("c", "giraffe"), note("c/d", "giraffe")],
    [note("new.md", "giraffe"), note("a.json/x", "giraffe")],
    [note("new.md", "giraffe"), note("c", "giraffe"), note("c.json/x", "giraffe")],
  ]) {
    await assert.rejects(ingest(brain, documents), conflict);
  }
  assert.deepEqual(await pathsOf(brain, "giraffe"), []);
  assert.equal(filesBelow("brains").length, 2);
});

test("a write that fails midway changes nothing", async (t) => {
  const brain = await store.create("b", undefined);
  await ingest(brain, [note("a.md", "zebra", { title: "old" })]);
  t.mock.method(Index.prototype, "apply", () => {
    throw new Error("ENOSPC: no space left on device");
  });
  const documents = [note("new/b.md", "giraffe"), note("a.md", "giraffe", { title: "new" })];
  await assert.rejects(ingest(brain, documents), /ENOSPC/);
  assert.deepEqual(readdirSync(join(root, "brains/b")), ["a.md"]);
  assert.equal(readFileSync(join(root, "brains/b/a.md"), "utf8"), "zebra");
  assert.match(readFileSync(join(root, "meta/b/a.md.json"), "utf8"), /"old"/);
  assert.deepEqual(changesLeft(root), []);
  assert.deepEqual(await pathsOf(brain, "zebra giraffe"), ["a.md"]);
});

test("a failed embedding stores nothing", async () => {
  await reopen({
    name: "broken",
    model: "m",
    embed: () => Promise.reject(new Problem("bad_gateway", "no embedder")),
  });
  const brain = await store.create("b", undefined);
  await assert.rejects(ingest(brain, [note("a.md", "zebra")]), { code: "bad_gateway" });
  assert.equal(brain.counts().documents, 0);
  assert.deepEqual(readdirSync(join(root, "brains/b")), []);
});

test("vectors of other dimensions than before store nothing", async () => {
  let dimensions = 2;
  const embed = (texts: readonly string[]) =>
    Promise.resolve(texts.map(() => new Float32Array(dimensions).fill(1)));
  await reopen({ name: "growing", model: "m", embed });
  const brain = await store.create("b", undefined);
  await ingest(brain, [note("a.md", "zebra")]);
  dimensions = 3;
  await assert.rejects(ingest(brain, [note("b.md", "zebra")]), { code: "bad_gateway" });
  await assert.rejects(retrieve(brain, "zebra", { mode: "semantic" }), { code: "bad_gateway" });
  assert.deepEqual(readdirSync(join(root, "brains/b")), ["a.md"]);
});

for (const [damage, bytes] of [
  ["garbage", Buffer.from("no log at all".repeat(999))],
  ["nothing", Buffer.alloc(0)],
] as const) {
  test(`an index and lock of ${damage} are rebuilt from the files`, async () => {
    await ingest(await store.create("b", undefined), [note("a.md", "zebra")]);
    await store.close();
    for (const entry of filesBelow("index"))
      writeFileSync(join(entry.parentPath, entry.name), bytes);
    await reopen();
    assert.deepEqual(await pathsOf(await store.get("b"), "zebra"), ["a.md"]);
  });
}

test("texts, titles and sessions are not truncated at a NUL", async () => {
  const explicit = { title: "T\0itle", metadata: { session_id: "s\0ession" } };
  const brain = await store.create("b", undefined);
  await ingest(brain, [note("a.md", "giraffe\0zebra"), note("b.md", "giraffe\0okapi", explicit)]);
  await ingest(brain, [note("a.md", "giraffe\0elephant", explicit)]);
  for (const step of [() => Promise.resolve(), reopen]) {
    await step();
    const reopened = await store.get("b");
    assert.deepEqual(await pathsOf(reopened, "zebra"), []);
    const { chunks } = await retrieve(reopened, "elephant");
    assert.deepEqual(
      chunks.map(({ path, text, title }) => ({ path, text, title })),
      [{ path: "a.md", text: "giraffe\0elephant", title: "T\0itle" }],
    );
    const filters = { sessionIds: ["s\0ession"] };
    assert.deepEqual(await pathsOf(reopened, "giraffe", { filters }), ["a.md", "b.md"]);
  }
});

test("the index follows the files", async () => {
  const documents = [0, 1, 2].map((n) => note(`${n}.md`, `zebra${n}`, { tags: ["t"] }));
  await ingest(await store.create("b", undefined), documents);
  await store.close();
  const folder = join(root, "brains/b");
  unlinkSync(join(folder, "0.md"));
  writeFileSync(join(folder, "1.md"), "---\ntitle: New\ntags: [u]\n---\ngiraffe");
  mkdirSync(join(folder, "sub"));
  writeFileSync(join(folder, "sub/new.md"), "---\nkind: note\n---\nelephant");
  writeFileSync(join(folder, "_hidden.md"), "elephant");
  writeFileSync(join(root, "meta/b/2.md.json"), '{"title": 7, "tags": ["late"]}');
  await reopen();
  const brain = await store.get("b");
  assert.deepEqual(await pathsOf(brain, "zebra0 zebra1 zebra2"), ["2.md"]);
  assert.deepEqual(await pathsOf(brain, "giraffe"), ["1.md"]);
  assert.deepEqual(await pathsOf(brain, "note title"), []);
  assert.deepEqual(await pathsOf(brain, "zebra2", { filters: { tags: ["late"] } }), ["2.md"]);
  const { chunks } = await retrieve(brain, "elephant");
  assert.deepEqual(
    chunks.map(({ path, text, metadata }) => ({ path, text, metadata })),
    [{ path: "sub/new.md", text: "elephant", metadata: { kind: "note" } }],
  );
});

test("an index of another embedder is rebuilt", async () => {
  await reopen(null);
  await ingest(await store.create("b", undefined), [note("a.md", "zebra")]);
  assert.equal((await store.get("b")).counts().vectors, 0);
  await reopen();
  const brain = await store.get("b");
  assert.equal(brain.counts().vectors, 1);
  assert.deepEqual(await pathsOf(brain, "zebra", { mode: "semantic" }), ["a.md"]);
});

test("a brain opens as soon as its embedder is back", async () => {
  await ingest(await store.create("b", undefined), [note("a.md", "zebra")]);
  let away = true;
  const real = new FeatureHash();
  await reopen({
    name: "remote",
    model: "m",
    embed: (texts) =>
      away ? Promise.reject(new Problem("bad_gateway", "unavailable")) : real.embed(texts),
  });
  await store.openAll();
  await assert.rejects(store.get("b"), { code: "bad_gateway" });
  away = false;
  assert.deepEqual(await pathsOf(await store.get("b"), "zebra", { mode: "semantic" }), ["a.md"]);
});

for (const [name, embed] of [
  ["unavailable", () => Promise.reject(new Problem("bad_gateway", "unavailable"))],
  ["silent", (_: unknown, signal: AbortSignal) => aborted(signal)],
] as const) {
  test(`a brain whose embedder is ${name} can be deleted`, async () => {
    await ingest(await store.create("b", undefined), [note("a.md", "zebra")]);
    await reopen({ name: "remote", model: "m", embed });
    const touched = store.get("b").catch((error: unknown) => error);
    await store.delete("b");
    assert.ok((await touched) instanceof Problem);
    assert.deepEqual(store.ids(), []);
    assert.deepEqual(filesBelow("meta"), []);
    assert.ok(!existsSync(join(root, "index/ts/b.log")));
    await assert.rejects(store.delete("b"), { code: "not_found" });
    assert.equal((await store.create("b", undefined)).counts().documents, 0);
  });
}

for (const [name, count] of [
  ["reads its folder", 256],
  ["indexes a document", 1],
] as const) {
  test(`a brain deleted while its opening ${name} is not found`, async () => {
    await store.create("b", undefined);
    await store.close();
    for (let n = 0; n < count; n++) writeFileSync(join(root, `brains/b/${n}.md`), "zebra");
    store = openStore(root);
    const opened = assert.rejects(store.get("b"), { code: "not_found" });
    await store.delete("b");
    await opened;
  });
}

test("of two concurrent deletes one does not find the brain", async () => {
  await ingest(await store.create("b", undefined), [note("a.md", "zebra")]);
  const ends = await Promise.allSettled([store.delete("b"), store.delete("b")]);
  assert.deepEqual(ends.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
});

test("metadata nested too deep in a sidecar is ignored", async () => {
  await ingest(await store.create("b", undefined), [note("a.md", "zebra")]);
  await store.close();
  const deep = "[".repeat(100_000) + "]".repeat(100_000);
  const sidecar = `{"title": "T", "metadata": {"deep": ${deep}}}`;
  writeFileSync(join(root, "meta/b/a.md.json"), sidecar);
  await reopen();
  const [found] = (await retrieve(await store.get("b"), "zebra")).chunks;
  assert.equal(found?.title, "T");
  assert.equal(found.metadata, undefined);
});

test("a second daemon builds an index of its own", async () => {
  const brain = await store.create("b", undefined);
  await ingest(brain, [note("a.md", "zebra")]);
  const second = openStore(root);
  assert.deepEqual(await pathsOf(await second.get("b"), "zebra"), ["a.md"]);
  await second.close();
  await ingest(brain, [note("b.md", "zebra")]);
  assert.deepEqual(await pathsOf(brain, "zebra"), ["a.md", "b.md"]);
});

test("rejects malformed, unknown and existing ids", async () => {
  await store.create("b", undefined);
  await assert.rejects(store.get("no such"), { code: "validation_error" });
  await assert.rejects(store.get("unknown"), { code: "not_found" });
  await assert.rejects(store.create("b", undefined), conflict);
  mkdirSync(join(root, "brains", "not a brain"));
  assert.deepEqual(store.ids(), ["b"]);
});
