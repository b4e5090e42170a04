import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";

import { FeatureHash } from "../embed/featureHash.js";
import { Index } from "./index.js";
import { breakSeal } from "./seal.js";

const PAGE = 4096;
const embedder = new FeatureHash();

let folder = "";
let file = "";
let whole = Buffer.alloc(0);

/** Words that no other document has; few of them share a bucket of the feature hash. */
function wordsOf(n: number): string {
  return `zebra${n} heron${7 * n} waits${13 * n}`;
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "salvage-"));
  file = join(folder, "b.sqlite");
  const index = await Index.open(file, embedder.name);
  for (let n = 0; n < 40; n++) {
    const chunks = [wordsOf(n), "with a giraffe"];
    const vectors = await embedder.embed(chunks);
    const metadata = { n };
    index.apply([{ path: String(n), stamp: "s", title: "T", tags: [], metadata, chunks, vectors }]);
  }
  index.close();
  whole = readFileSync(file);
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** Open the index and check that it finds each document that it has, by its words and by its vector. */
async function requireSound(what: string): Promise<number> {
  const index = await Index.open(file, embedder.name);
  const paths = [...index.stamps().keys()];
  const { length } = paths;
  assert.deepEqual(
    index.counts(),
    { documents: length, chunks: 2 * length, vectors: 2 * length },
    what,
  );
  for (const path of paths) {
    const words = wordsOf(Number(path));
    const [vector] = await embedder.embed([words]);
    assert.ok(vector !== undefined);
    const [byWords] = index.keyword(words, () => true, 1);
    const [byVector] = index.semantic(vector, () => true, 1, "cosine");
    for (const hit of [byWords, byVector]) {
      assert.ok(hit !== undefined, what);
      const { text, metadata } = index.chunk(hit.slot);
      assert.deepEqual([text, metadata], [words, { n: Number(path) }], what);
    }
  }
  index.close();
  return length;
}

test("an index that was closed is sealed, once", async () => {
  assert.equal(await breakSeal(file, () => Promise.resolve()), true);
  assert.equal(await breakSeal(file, () => Promise.resolve()), false);
});

test("an index without its seal keeps its documents", async () => {
  rmSync(`${file}.seal`);
  assert.equal(await requireSound("without seal"), 40);
});

test("damage to any page of an index is noticed", async () => {
  const damages: ((page: Buffer) => Buffer)[] = [
    () => Buffer.alloc(PAGE, Buffer.from("deadbeef", "hex")),
    () => Buffer.alloc(PAGE),
    (page) => Buffer.from(page.toString("latin1").replaceAll("zebra", "zobra"), "latin1"),
    (page) => {
      page.writeUInt8(page.readUInt8(PAGE - 9) ^ 1, PAGE - 9);
      return page;
    },
  ];
  for (let start = 0; start < whole.length; start += PAGE) {
    const damaged = Buffer.from(whole);
    const damage = damages[(start / PAGE) % damages.length];
    assert.ok(damage !== undefined);
    damage(Buffer.from(whole.subarray(start, start + PAGE))).copy(damaged, start);
    writeFileSync(file, damaged);
    // Without a seal only what is read can show the damage.
    rmSync(`${file}.seal`);
    await requireSound(`page ${start / PAGE}`);
  }
});

test("a letter that changed in a text is noticed", async () => {
  writeFileSync(file, whole.toString("latin1").replaceAll("zebra7 ", "zobra7 "), "latin1");
  assert.equal(await requireSound("a letter"), 39);
});

test("a truncated index is replaced", async () => {
  for (const length of [0, 1, 100, PAGE, 3 * PAGE + 17]) {
    writeFileSync(file, whole.subarray(0, length));
    await requireSound(`${length} bytes`);
  }
});
