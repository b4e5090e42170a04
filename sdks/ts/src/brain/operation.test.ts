/** Edits of a brain are atomic. */

import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";

import { FeatureHash } from "../embed/featureHash.js";
import { Index } from "../index/index.js";
import { changesLeft, ingest, NEVER, note, openStore, pathsOf } from "../testing/brains.js";
import { temporaryFolder } from "../testing/daemon.js";
import { growth } from "../testing/growth.js";
import type { Brain } from "./brain.js";
import { type Operation, operationsEdit } from "./operation.js";
import type { BrainStore } from "./store.js";

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

const write = (path: string, text = "giraffe"): Operation => ({
  type: "write",
  path,
  content: Buffer.from(text),
});
const append = (path: string, text: string): Operation =>
  ({ ...write(path, text), type: "append" }) as Operation;
const remove = (path: string): Operation => ({ type: "delete", path });
const rename = (path: string, to: string): Operation => ({ type: "rename", path, to });
const apply = (...ops: Operation[]) => brain.change(operationsEdit(ops), NEVER);

test("a path of a thousand folders is fast", async () => {
  const deep = async (folders: number) => {
    await apply(write(`${"d/".repeat(folders)}a`));
  };
  // The lengths of its folders' paths are quadratic.
  assert.ok((await growth(deep, 62)) < 2.5);
});

test("a thousand appends copy each byte once or twice", async (t) => {
  const piece = "x".repeat(8000);
  const concat = t.mock.method(Buffer, "concat");
  await apply(...Array.from({ length: 1000 }, (): Operation => append("b", piece)));
  const copied = concat.mock.calls.reduce((sum, { result }) => sum + (result?.length ?? 0), 0);
  assert.ok(copied < 2.5 * 1000 * piece.length, `${copied} bytes`);
  assert.equal(brain.documents.read("b")?.toString(), piece.repeat(1000));
});

/** Everything on disk: folders and the contents of files. */
function state(): string[] {
  return ["brains/b", "meta/b"].flatMap((tree) =>
    readdirSync(join(root, tree), { recursive: true, encoding: "utf8" })
      .sort()
      .map((path) => {
        const file = join(root, tree, path);
        return `${tree}/${path}: ${statSync(file).isFile() ? readFileSync(file, "utf8") : "folder"}`;
      }),
  );
}

const ZEBRAS = ["a", "f/g/b.md", "f/c.md"].map((path) => note(path, "zebra", { title: path }));

for (const ops of [
  [write("a"), write("new/x/y.md")],
  [remove("f/g/b.md"), remove("f/c.md")],
  [rename("a", "a/b/c")],
  [rename("f/g/b.md", "x"), rename("f/c.md", "f")],
  [remove("a"), write("a.json/b"), write("a.json/c")],
  [rename("a", "f/c.md"), rename("f/c.md", "a"), write("f/c.md")],
]) {
  test(`a failed commit changes nothing: ${JSON.stringify(ops)}`, async (t) => {
    await ingest(brain, ZEBRAS);
    const before = state();
    const failing = t.mock.method(Index.prototype, "apply", () => {
      throw new Error("ENOSPC: no space left on device");
    });
    await assert.rejects(apply(...ops), /ENOSPC/);
    assert.deepEqual(state(), before);
    assert.deepEqual(changesLeft(root), []);
    failing.mock.restore();
    await apply(...ops);
    assert.notDeepEqual(state(), before);
    assert.deepEqual(changesLeft(root), []);
  });
}

const conflicts: [name: string, ops: Operation[]][] = [
  ["a document is not a folder", [write("a/x")]],
  ["nor is one further up", [write("a/x/y/z")]],
  ["a folder is not a document", [write("f")]],
  ["by rename", [rename("a", "f/g")]],
  ["by append", [{ type: "append", path: "f", content: Buffer.alloc(0) }]],
  ["among the ops", [write("n/x"), write("n")]],
  ["a sidecar is not a folder", [write("a.json/x")]],
  ["a folder is not a sidecar", [write("s.json/x"), write("s")]],
  ["even if there is no sidecar yet", [write("s"), write("s.json/x")]],
];

for (const [name, ops] of conflicts) {
  test(`conflict: ${name}`, async () => {
    await ingest(brain, ZEBRAS);
    const before = state();
    await assert.rejects(apply(write("new.md"), ...ops), { code: "conflict" });
    assert.deepEqual(state(), before);
  });
}

test("ops that make room avoid the conflict", async () => {
  await ingest(brain, ZEBRAS);
  await apply(remove("a"), write("a.json/x"), rename("f/g/b.md", "b.md"), rename("f/c.md", "f"));
  assert.deepEqual(await pathsOf(brain, "zebra giraffe"), ["a.json/x", "b.md", "f"]);
});

test("orphaned sidecars and empty folders do not conflict", async () => {
  await ingest(brain, [note("old.json/x", "zebra", { title: "T" })]);
  rmSync(join(root, "brains/b/old.json"), { recursive: true });
  mkdirSync(join(root, "brains/b/empty/folder"), { recursive: true });
  await ingest(brain, [note("old", "zebra")]);
  await apply(write("empty"));
  assert.deepEqual(await pathsOf(brain, "giraffe"), ["empty"]);
});

test("a recreated document does not inherit the old sidecar", async () => {
  await ingest(brain, [note("a.md", "zebra", { tags: ["t"] })]);
  rmSync(join(root, "brains/b/a.md"));
  await apply(write("a.md"));
  assert.deepEqual(await pathsOf(brain, "giraffe", { filters: { tags: ["t"] } }), []);
});

test("foreign files are not removed to make room", async () => {
  mkdirSync(join(root, "brains/b/f"));
  symlinkSync(root, join(root, "brains/b/f/link"));
  await assert.rejects(apply(write("f")), { code: "conflict" });
  symlinkSync(root, join(root, "brains/b/link"));
  await assert.rejects(apply(write("link/x")), { code: "conflict" });
});

test("sidecars are not written through a link", async () => {
  const outside = join(root, "outside");
  mkdirSync(outside);
  mkdirSync(join(root, "meta/b"), { recursive: true });
  symlinkSync(outside, join(root, "meta/b/f"));
  await ingest(brain, [note("f/a.md", "zebra", { title: "T" })]);
  assert.deepEqual(readdirSync(outside), []);
});

test("commits made while the embedder works are kept and not embedded again", async () => {
  await store.close();
  const real = new FeatureHash();
  const embedded: string[] = [];
  store = openStore(root, {
    name: "slow",
    model: "m",
    embed: async (texts) => {
      embedded.push(...texts);
      if (texts[0] === "!") await apply(write("a"), write("other"));
      return real.embed(texts);
    },
  });
  brain = await store.get("b");
  await apply({ type: "append", path: "a", content: Buffer.from("!") }, write("b", "zebra"));
  assert.deepEqual(embedded.slice(0, 2), ["!", "zebra"]);
  assert.deepEqual(embedded.slice(2), ["giraffe", "giraffe", "giraffe!"]);
  assert.equal(readFileSync(join(root, "brains/b/a"), "utf8"), "giraffe!");
  const found = await pathsOf(brain, "giraffe zebra", { mode: "semantic" });
  assert.deepEqual(found.sort(), ["a", "b", "other"]);
});
