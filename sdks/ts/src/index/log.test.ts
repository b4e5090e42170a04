/** An index after damage, a full disk and many changes. */

import assert from "node:assert/strict";
import fs, { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { beforeEach, test, type TestContext } from "node:test";

import { pino } from "pino";

import { temporaryFolder } from "../testing/daemon.js";
import { best, found, indexed, openIndex, slowDown } from "../testing/indexes.js";
import { until } from "../testing/until.js";
import { LEAST_WASTE } from "./index.js";
import { LEAST_WASTE_BYTES, removeLog } from "./log.js";

const PAGE = 4096;
const MARK = Buffer.from("\0rec");
const DOCUMENTS = 40;

const file = join(temporaryFolder(), "b.log");

beforeEach(() => {
  removeLog(file);
});

/** Words that no other document has; few of them share a bucket of the feature hash. */
function wordsOf(n: number | string): string {
  return `zebra${n} heron${7 * Number(n)} waits${13 * Number(n)}`;
}

/** The log of a closed index with some documents, whose paths are numbers. */
async function filledLog(): Promise<Buffer> {
  const index = await openIndex(file);
  for (let n = 0; n < DOCUMENTS; n++) {
    index.apply([await indexed(String(n), wordsOf(n), "with a giraffe")]);
  }
  index.close();
  return readFileSync(file);
}

/** Open the index and check that it finds each document that it has, by its words and by its vector. */
async function requireSound(what: string): Promise<number> {
  const index = await openIndex(file);
  const paths = [...index.stamps().keys()];
  const { length } = paths;
  const counts = { documents: length, chunks: 2 * length, vectors: 2 * length };
  assert.deepEqual(index.counts(), counts, what);
  for (const path of paths) {
    assert.equal((await found(index, wordsOf(path)))[0], path, what);
    assert.equal(await best(index, wordsOf(path)), path, what);
  }
  index.close();
  return length;
}

const damages: [name: string, damage: (page: Buffer) => unknown][] = [
  ["noise", (page) => page.fill("deadbeef", "hex")],
  ["zeros", (page) => page.fill(0)],
  ["marks", (page) => page.fill(Buffer.concat([MARK, MARK, MARK, Buffer.alloc(99)]))],
  ["letters", (page) => page.write(page.toString("latin1").replaceAll("zebra", "zobra"), "latin1")],
  ["a bit", (page) => page.writeUInt8(page.readUInt8(PAGE - 9) ^ 1, PAGE - 9)],
];

for (const [name, damage] of damages) {
  test(`damage to any page of the log is noticed: ${name}`, async () => {
    const whole = await filledLog();
    for (let start = 0; start + PAGE <= whole.length; start += PAGE) {
      const damaged = Buffer.from(whole);
      damage(damaged.subarray(start, start + PAGE));
      writeFileSync(file, damaged);
      await requireSound(`page at ${start}`);
    }
  });
}

test("a byte that changed costs one document", async () => {
  const whole = await filledLog();
  for (let at = whole.indexOf(MARK); at < whole.length; at += 499) {
    const damaged = Buffer.from(whole);
    damaged.writeUInt8(damaged.readUInt8(at) ^ 4, at);
    writeFileSync(file, damaged);
    assert.equal(await requireSound(`byte ${at}`), DOCUMENTS - 1);
  }
});

test("a log that was cut off keeps the records before", async () => {
  const whole = await filledLog();
  const ends = [0, 1, 9, whole.indexOf(MARK)];
  for (let length = whole.indexOf(MARK); length < whole.length; length += 997) ends.push(length);
  const last = whole.lastIndexOf(MARK);
  for (let length = last; length < last + 20; length++) ends.push(length);
  for (const length of ends) {
    writeFileSync(file, whole.subarray(0, length));
    const marks = whole.subarray(0, length).toString("latin1").split(MARK.toString("latin1"));
    const intact = Math.max(0, marks.length - 2);
    assert.ok((await requireSound(`${length} bytes`)) >= intact, `${length} bytes`);
  }
});

test("records after one that was cut off are found", async () => {
  const whole = await filledLog();
  writeFileSync(file, whole.subarray(0, whole.lastIndexOf(MARK) + 30));
  const index = await openIndex(file);
  index.apply([await indexed("40", wordsOf(40), "with a giraffe")]);
  index.close();
  assert.equal(await requireSound("with another one"), DOCUMENTS);
});

test("the record after a damaged one is found, wherever it begins", async () => {
  const fill = async (letters: number) => {
    removeLog(file);
    const index = await openIndex(file);
    index.apply([await indexed("a.md", "x".repeat(letters)), await indexed("b.md", "zebra")]);
    index.close();
    return readFileSync(file);
  };
  // What is read at once ends before, in and after the second mark.
  const empty = await fill(0);
  const others = empty.lastIndexOf(MARK) - empty.indexOf(MARK);
  for (let end = -5; end <= 5; end++) {
    const whole = await fill(2 ** 19 - others + end);
    whole.writeUInt8(0, whole.indexOf("xx"));
    writeFileSync(file, whole);
    const index = await openIndex(file);
    assert.deepEqual([...index.stamps().keys()], ["b.md"]);
    index.close();
  }
});

test("vectors that damage let meet others of other dimensions are indexed again", async () => {
  const index = await openIndex(file);
  index.apply([await indexed("a.md", "zebra")]);
  index.apply([], ["a.md"]);
  index.apply([{ ...(await indexed("b.md", "lion")), vectors: [Float32Array.of(1)] }]);
  index.close();
  const whole = readFileSync(file);
  whole.write("?", whole.indexOf(MARK, whole.indexOf(MARK) + 1));
  writeFileSync(file, whole);
  const again = await openIndex(file);
  assert.deepEqual([...again.stamps().keys()], ["a.md"]);
  again.close();
});

test("the log of another embedder or format is begun anew", async () => {
  const whole = await filledLog();
  for (const content of [
    whole.toString("latin1").replace("fh256-1", "fh256-2"),
    whole.toString("latin1").replace("memoryd-ts ", "memoryd-ts 9"),
    "no log at all".repeat(999),
  ]) {
    writeFileSync(file, content, "latin1");
    assert.equal(await requireSound(content.slice(0, 30)), 0);
  }
});

/** Let the disk be full after `bytes` more. */
function fillDisk(t: TestContext, bytes: number): void {
  const { writeSync } = fs;
  t.mock.method(
    fs,
    "writeSync",
    (file: number, content: Buffer, from: number, _: number, at: number) => {
      if (bytes === 0) throw new Error("ENOSPC: no space left on device");
      return writeSync(file, content, from, bytes, at);
    },
  );
  syncBuiltinESMExports();
}

function emptyDisk(t: TestContext): void {
  t.mock.restoreAll();
  syncBuiltinESMExports();
}

for (const bytes of [0, 1, 17, 700, 2000]) {
  test(`a disk that is full after ${bytes} bytes changes nothing`, async (t) => {
    const index = await openIndex(file);
    index.apply([await indexed("a.md", "zebra")]);
    const size = readFileSync(file).length;
    const documents = [await indexed("b.md", "lion"), await indexed("c.md", "lion")];
    fillDisk(t, bytes);
    assert.throws(() => {
      index.apply(documents, ["a.md"]);
    }, /ENOSPC|cannot be written/);
    emptyDisk(t);
    assert.equal(readFileSync(file).length, size);
    assert.deepEqual(await found(index, "zebra lion"), ["a.md"]);
    index.apply([await indexed("d.md", "lion")]);
    index.close();
    const again = await openIndex(file);
    assert.deepEqual(await found(again, "zebra lion"), ["a.md", "d.md"]);
    again.close();
  });
}

test("a log of mostly old records is rewritten, unless the disk is full", async (t) => {
  const index = await openIndex(file);
  const [a, b] = [await indexed("a.md", "zebra"), await indexed("b.md", "lion")];
  const bytes = () => readFileSync(file).length;
  index.apply([a, b]);
  const most = bytes() * LEAST_WASTE;
  for (let n = 0; n < 3 * LEAST_WASTE; n++) index.apply([a, b]);
  assert.ok(bytes() < most);
  // The disk has space for changes, but not for a second log.
  const attempts = t.mock.method(fs, "openSync", () => {
    throw new Error("ENOSPC: no space left on device");
  });
  syncBuiltinESMExports();
  for (let n = 0; n < 3 * LEAST_WASTE; n++) index.apply([a, b]);
  assert.ok(attempts.mock.callCount() < 10);
  emptyDisk(t);
  assert.ok(bytes() > most);
  index.apply([await indexed("c.md", "zebra")]);
  for (let n = 0; n < LEAST_WASTE; n++) index.apply([a, b]);
  assert.ok(bytes() < most);
  index.close();
  const again = await openIndex(file);
  assert.deepEqual(await found(again, "zebra lion"), ["b.md", "a.md", "c.md"]);
  assert.equal(await best(again, "lion"), "b.md");
  again.close();
});

test("a log that cannot be rewritten is reported", async () => {
  const whole = await filledLog();
  whole.write("?", whole.lastIndexOf(MARK));
  writeFileSync(file, whole);
  // No file can be opened in its place, nor is it removed.
  mkdirSync(`${file}.new`);
  const lines: string[] = [];
  const logger = pino({}, { write: (line: string) => lines.push(line) });
  const index = await openIndex(file, logger);
  await until(() => lines.length > 0);
  index.close();
  rmdirSync(`${file}.new`);
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? "", /"level":40.*"reason":".*cannot rewrite the log of an index/);
  assert.deepEqual(readFileSync(file), whole);
});

test("a document that is replaced many times does not grow the log without bound", async (t) => {
  const index = await openIndex(file);
  const bytes = () => readFileSync(file).length;
  const documents = [await indexed("a.md", "zebra".repeat(2 ** 16)), await indexed("b.md", "lion")];
  index.apply(documents);
  const live = bytes();
  const most = 2 * live + LEAST_WASTE_BYTES;
  for (let n = 0; n < 60; n++) {
    index.apply(documents);
    await until(() => !existsSync(`${file}.new`));
    assert.ok(bytes() <= most);
  }
  // The disk has space for changes, but not for a second log.
  const attempts = t.mock.method(fs, "openSync", () => {
    throw new Error("ENOSPC: no space left on device");
  });
  syncBuiltinESMExports();
  for (let n = 0; n < 60; n++) index.apply(documents);
  const count = attempts.mock.callCount();
  emptyDisk(t);
  assert.ok(count > 0 && count < 10);
  assert.ok(bytes() > most);
  index.close();
  const again = await openIndex(file);
  await until(() => !existsSync(`${file}.new`));
  assert.ok(bytes() <= live);
  again.apply([], ["a.md"]);
  assert.deepEqual(await found(again, "zebra lion"), ["b.md"]);
  again.close();
});

test("a change of more records than a call takes arguments is made while the log is rewritten", async (t) => {
  const whole = await filledLog();
  whole.write("?", whole.lastIndexOf(MARK));
  writeFileSync(file, whole);
  slowDown(t);
  const index = await openIndex(file);
  assert.ok(existsSync(`${file}.new`));
  const others = Array.from({ length: 150_000 }, (_, n) => `other${n}`);
  index.apply([], ["0", ...others]);
  assert.equal(index.counts().documents, DOCUMENTS - 2);
  await until(() => !existsSync(`${file}.new`));
  index.close();
  t.mock.restoreAll();
  assert.equal(await requireSound("with fewer documents"), DOCUMENTS - 2);
});

for (const change of ["changed", "closed"] as const) {
  test(`an index may be ${change} while its log is rewritten`, async (t) => {
    const whole = await filledLog();
    whole.write("?", whole.lastIndexOf(MARK));
    writeFileSync(file, whole);
    slowDown(t);
    const index = await openIndex(file);
    assert.ok(existsSync(`${file}.new`));
    index.apply([await indexed("zebra.md", "zebra")], ["0", "1", "2"]);
    if (change === "changed") await until(() => !existsSync(`${file}.new`));
    index.close();
    assert.ok(!existsSync(`${file}.new`));
    assert.equal(readFileSync(file).length < whole.length, change === "changed");
    const again = await openIndex(file);
    assert.equal(again.counts().documents, DOCUMENTS - 3);
    assert.deepEqual(await found(again, "zebra"), ["zebra.md"]);
    again.close();
  });
}
