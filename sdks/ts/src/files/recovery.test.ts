/** Recovery from a kill in the middle of a commit. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs, {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { basename, join } from "node:path";
import { afterEach, beforeEach, type TestContext, test } from "node:test";

import type { Brain } from "../brain/brain.js";
import { type Operation, operationsEdit } from "../brain/operation.js";
import type { BrainStore } from "../brain/store.js";
import { Index } from "../index/index.js";
import { changesLeft, ingest, NEVER, note, openStore, pathsOf } from "../testing/brains.js";
import { temporaryFolder } from "../testing/daemon.js";
import { lockFile } from "./lock.js";

let root: string;
let copies: string;
let store: BrainStore;
let brain: Brain;

beforeEach(async () => {
  root = temporaryFolder();
  copies = temporaryFolder();
  store = openStore(root);
  brain = await store.create("b", undefined);
});

afterEach(async () => {
  await store.close();
  rmSync(root, { recursive: true });
  rmSync(copies, { recursive: true });
});

const write = (path: string): Operation => ({
  type: "write",
  path,
  content: Buffer.from("giraffe"),
});
const remove = (path: string): Operation => ({ type: "delete", path });
const rename = (path: string, to: string): Operation => ({ type: "rename", path, to });
const apply = (...ops: Operation[]) => brain.change(operationsEdit(ops), NEVER);

function contents(home: string): Record<string, string> {
  const files = ["brains/b", "meta/b"].flatMap((tree) =>
    readdirSync(join(home, tree), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name)),
  );
  return Object.fromEntries(
    files.sort().map((file) => [file.slice(home.length), readFileSync(file, "utf8")]),
  );
}

/**
 * Copy the state folder as a kill at this moment would leave it. Documents are hard links, because the
 * journal identifies files by inode; files that are written in place are copied.
 */
function freeze(home: string): void {
  execFileSync("cp", ["-al", root, home]);
  const journals = readdirSync(join(root, "staging"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith("/journal"))
    .map((name) => join("staging", name));
  for (const name of ["index", ...journals]) {
    rmSync(join(home, name), { recursive: true });
    cpSync(join(root, name), join(home, name), { recursive: true });
  }
  // Another file than the lock of the daemon that still runs here.
  for (const name of readdirSync(join(home, "staging"), { recursive: true, encoding: "utf8" })) {
    if (basename(name) === "lock") rmSync(join(home, "staging", name));
  }
}

/** Call `before` ahead of each step that moves or links a file. */
function beforeEachStep(t: TestContext, before: () => void): void {
  for (const name of ["renameSync", "linkSync"] as const) {
    const step = fs[name];
    t.mock.method(fs, name, (source: string, target: string) => {
      before();
      step(source, target);
    });
  }
  syncBuiltinESMExports();
  t.after(() => {
    restoreMocks(t);
  });
}

function beforeIndexing(t: TestContext, before: () => void): void {
  // eslint-disable-next-line @typescript-eslint/unbound-method -- called with its `this`
  const real = Index.prototype.apply;
  t.mock.method(
    Index.prototype,
    "apply",
    function (this: Index, ...parameters: Parameters<typeof real>) {
      before();
      real.apply(this, parameters);
    },
  );
}

function restoreMocks(t: TestContext): void {
  t.mock.restoreAll();
  syncBuiltinESMExports();
}

const NOTES = ["a", "f/b.md", "c"].map((path) => note(path, `zebra ${path}`, { title: path }));

for (const [name, ops] of Object.entries({
  swap: [rename("a", "x"), rename("c", "a"), rename("x", "c")],
  rename: [rename("a", "new/x")],
  several: [write("a"), write("f/b.md"), remove("c"), write("new/y")],
  "a file that becomes a folder": [rename("a", "a/b/c"), rename("f/b.md", "f")],
})) {
  test(`recovers from a kill at any step: ${name}`, async (t) => {
    await ingest(brain, NOTES);
    const before = contents(root);
    const homes: string[] = [];
    const copy = () => {
      const home = join(copies, String(homes.length));
      freeze(home);
      homes.push(home);
    };
    beforeEachStep(t, copy);
    beforeIndexing(t, copy);
    await apply(...ops);
    restoreMocks(t);
    assert.ok(homes.length > 2);
    for (const home of homes) {
      const again = openStore(home);
      assert.deepEqual(contents(home), before);
      assert.deepEqual(changesLeft(home), []);
      assert.equal((await pathsOf(await again.get("b"), "zebra")).length, 3);
      await again.close();
    }
  });
}

test("a failed undo keeps the files and is retried at the next start", async (t) => {
  await ingest(brain, NOTES);
  const before = contents(root);
  let undoing = false;
  t.mock.method(Index.prototype, "apply", () => {
    undoing = true;
    throw new Error("no space");
  });
  let failed = false;
  beforeEachStep(t, () => {
    if (undoing && !failed) {
      failed = true;
      throw new Error("EIO");
    }
  });
  await assert.rejects(apply(rename("a", "x"), rename("c", "y")), AggregateError);
  restoreMocks(t);
  assert.equal(changesLeft(root).length, 1);
  const lost = Object.keys(before).filter((file) => !existsSync(join(root, file)));
  assert.equal(lost.length, 1);
  await store.close();
  store = openStore(root);
  assert.deepEqual(contents(root), before);
  assert.deepEqual(changesLeft(root), []);
});

/** Let a function of the file system fail for the paths that `fails` names. */
function failAt(
  t: TestContext,
  name: "rmSync" | "rmdirSync" | "unlinkSync" | "readdirSync",
  fails: (path: string) => boolean,
): void {
  const real = fs[name] as (path: string, ...more: unknown[]) => unknown;
  t.mock.method(fs, name, (path: string, ...more: unknown[]) => {
    if (fails(path)) throw new Error("EIO: i/o error");
    return real(path, ...more);
  });
  syncBuiltinESMExports();
  t.after(() => {
    restoreMocks(t);
  });
}

test("a change that is undone after it was indexed is not found", async (t) => {
  await ingest(brain, NOTES);
  const before = contents(root);
  let failed = false;
  failAt(t, "rmSync", (path) => {
    if (failed || basename(path) !== "journal") return false;
    return (failed = true);
  });
  await assert.rejects(apply(write("a"), write("new"), remove("c")), /EIO/);
  restoreMocks(t);
  assert.deepEqual(contents(root), before);
  const [again, other] = await Promise.all([store.get("b"), store.get("b")]);
  assert.equal(again, other);
  assert.deepEqual(await pathsOf(again, "giraffe"), []);
  assert.deepEqual((await pathsOf(again, "zebra")).sort(), ["a", "c", "f/b.md"]);
  await store.close();
  store = openStore(root);
  assert.equal((await pathsOf(await store.get("b"), "zebra")).length, 3);
});

test("an empty folder that cannot be removed does not undo a committed change", async (t) => {
  await ingest(brain, NOTES);
  failAt(t, "rmdirSync", (path) => basename(path) === "f");
  await apply(remove("f/b.md"), write("new"));
  restoreMocks(t);
  assert.equal(readFileSync(join(root, "brains/b/new"), "utf8"), "giraffe");
  assert.ok(!existsSync(join(root, "brains/b/f/b.md")));
  assert.deepEqual(await pathsOf(await store.get("b"), "giraffe"), ["new"]);
  assert.deepEqual(changesLeft(root), []);
});

for (const name of ["readdirSync", "unlinkSync", "rmdirSync"] as const) {
  test(`a change is stored even if its folder cannot be removed: ${name}`, async (t) => {
    await ingest(brain, NOTES);
    let failures = 0;
    failAt(t, name, (path) => path.includes("/change-") && failures++ >= 0);
    await apply(write("a"), remove("c"));
    restoreMocks(t);
    assert.equal(failures, 1);
    assert.deepEqual(await pathsOf(brain, "giraffe"), ["a"]);
    await store.close();
    assert.deepEqual(changesLeft(root), []);
    store = openStore(root);
    assert.deepEqual(await pathsOf(await store.get("b"), "giraffe"), ["a"]);
  });
}

test("later acknowledged writes are not undone", async (t) => {
  await ingest(brain, NOTES);
  const home = join(copies, "home");
  t.mock.method(Index.prototype, "apply", () => {
    freeze(home);
    throw new Error("killed");
  });
  await assert.rejects(apply(write("a"), write("new")), /killed/);
  restoreMocks(t);
  for (const name of ["a", "new"]) {
    rmSync(join(home, "brains/b", name));
    writeFileSync(join(home, "brains/b", name), "later");
  }
  await openStore(home).close();
  const after = contents(home);
  assert.deepEqual([after["/brains/b/a"], after["/brains/b/new"]], ["later", "later"]);
});

test("the commit of a running daemon is left alone", async (t) => {
  await ingest(brain, NOTES);
  beforeIndexing(t, () => {
    void openStore(root).close();
  });
  await apply(rename("a", "c"), rename("f/b.md", "a"));
  assert.equal(readFileSync(join(root, "brains/b/c"), "utf8"), "zebra a");
  assert.equal(readFileSync(join(root, "brains/b/a"), "utf8"), "zebra f/b.md");
});

test("a daemon whose staging folder is gone releases its lock", async () => {
  const [name = ""] = readdirSync(join(root, "staging")).filter((entry) => entry.startsWith("ts-"));
  const moved = join(copies, "moved");
  renameSync(join(root, "staging", name), moved);
  assert.equal(lockFile(join(moved, "lock")), undefined);
  await store.close();
  const lock = lockFile(join(moved, "lock"));
  assert.ok(lock);
  lock.close();
  store = openStore(root);
});

test("an unreadable journal is kept and does not prevent a start", async () => {
  for (const work of ["other/change", "ts-commit-x"]) {
    mkdirSync(join(root, "staging", work), { recursive: true });
    writeFileSync(join(root, "staging", work, "journal"), "{\n");
  }
  await openStore(root).close();
  for (const work of ["other/change", "ts-commit-x"])
    assert.ok(existsSync(join(root, "staging", work, "journal")));
});

test("a brain that was removed by hand is gone, and its index too", async () => {
  await ingest(brain, NOTES);
  rmSync(join(root, "brains/b"), { recursive: true });
  await assert.rejects(store.get("b"), { code: "not_found" });
  assert.throws(() => brain.index, { code: "not_found" });
  brain = await store.create("b", undefined);
  assert.equal(brain.counts().documents, 0);
  assert.deepEqual(readdirSync(join(root, "brains/b")), []);
});
