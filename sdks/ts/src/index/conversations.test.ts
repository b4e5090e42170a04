import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { test } from "node:test";

import { FeatureHash } from "../embed/featureHash.js";
import { temporaryFolder } from "../testing/daemon.js";
import { indexed, numbersBelow, openIndex } from "../testing/indexes.js";
import { sharedVectors } from "../testing/vectors.js";
import { parseExactly } from "../wire/exactJson.js";
import type { Index, IndexedDocument } from "./index.js";
import { Scorer } from "./postings.js";

interface Place {
  path: string;
  ordinal: number;
}

const vectors = sharedVectors("conversation") as {
  cases: {
    name: string;
    query: string;
    chunks: (Place & { text: string; metadata: Record<string, unknown> })[];
    terms: string[];
    bm25: { term: string; scores: number[] }[];
    cosines?: number[];
    expected: (Place & { score: number })[] | null;
  }[];
};

for (const { name, query, chunks, terms, bm25, cosines, expected } of vectors.cases) {
  test(name, async (t) => {
    const documents = new Map<string, IndexedDocument>();
    for (const [n, { path, text, metadata }] of chunks.entries()) {
      const document = documents.get(path) ?? { ...(await indexed(path)), metadata };
      document.chunks.push(text);
      // The product with [1, 1] is the cosine in float64, though these are float32.
      const cosine = cosines?.[n] ?? 0;
      document.vectors.push(Float32Array.of(cosine, cosine - Math.fround(cosine)));
      documents.set(path, document);
    }
    const index = await openIndex();
    index.apply([...documents.values()].reverse());
    const search = index.search(query);
    assert.equal(search.hasTurns, expected !== null);
    if (expected === null) return;
    const slots = Array.from(chunks, (_, slot) => {
      const { path, ordinal } = search.chunk(slot);
      return chunks.findIndex((chunk) => chunk.path === path && chunk.ordinal === ordinal);
    });
    const visited: string[] = [];
    t.mock.method(Scorer.prototype, "visit", ((term, _, each) => {
      visited.push(term);
      const scores = bm25.find((given) => given.term === term)?.scores ?? [];
      for (const [slot, n] of slots.entries()) if (scores[n]) each(slot, scores[n]);
      return Promise.resolve();
    }) satisfies Scorer["visit"]);
    const hits = await search.conversation(cosines && Float32Array.of(1, 1), 1000);
    assert.deepEqual(visited, [...new Set(terms)]);
    assert.equal(hits.length, expected.length);
    for (const [n, { path, ordinal, score }] of expected.entries()) {
      const hit = hits[n] ?? { slot: NaN, score: NaN };
      const chunk = search.chunk(hit.slot);
      assert.deepEqual([chunk.path, chunk.ordinal], [path, ordinal]);
      assert.ok(Math.abs(hit.score - score) < 1e-6, `${path} scores ${hit.score}`);
    }
  });
}

/** A turn of a session; `more` is the JSON of other metadata. */
async function said(
  path: string,
  session: string,
  more: string,
  ...chunks: string[]
): Promise<IndexedDocument> {
  const metadata = parseExactly(more) as Record<string, unknown>;
  return { ...(await indexed(path, ...chunks)), metadata: { ...metadata, session_id: session } };
}

/** The paths and scores of all that a conversation search finds. */
async function conversation(index: Index, query: string, vector?: Float32Array) {
  const search = index.search(query);
  const hits = await search.conversation(vector, 1000);
  return hits.map(({ slot, score }) => ({ path: search.chunk(slot).path, score }));
}

test("a session is ordered by index, then path, then ordinal", async () => {
  // Each is one step from the next one: a word of the first reaches four.
  const turns = [
    ["9.md", '{"index": -1e300}'],
    ["8.md", '{"index": -0}'],
    ["80.md", '{"index": 0.0}'],
    ["7.md", '{"index": 2.5}'],
    ["6.md", '{"index": 1e1}'],
    ["60.md", '{"index": 9007199254740993}'],
    ["10.md", '{"index": "1"}'],
    ["11.md", '{"index": true}'],
    ["12.md", '{"index": null}'],
    ["13.md", '{"index": {"a": 1}}'],
    ["14.md", "{}"],
    ["15.md", '{"index": -1e400}'],
    ["\uffee.md", "{}"],
    ["😀.md", "{}"],
  ] as const;
  for (const [n, [first]] of turns.entries()) {
    const index = await openIndex();
    const texts = turns.map(([path, more]) =>
      said(path, "s", more, path === first ? "zebra" : "lion", "lion"),
    );
    index.apply((await Promise.all(texts)).reverse());
    index.apply([await said("0.md", "", '{"index": 3}', "lion"), await indexed("1.md", "lion")]);
    const paths = (await conversation(index, "zebra")).map(({ path }) => path);
    // Two chunks each: of those before, the word reaches both.
    const reached = [-2, -2, -1, -1, 0, 0, 1, 1, 2].map((steps) => turns[n + steps]?.[0]);
    assert.deepEqual(paths.sort(), reached.filter((path) => path !== undefined).sort());
  }
});

test("a speaker is named by all terms of the name", async () => {
  const speakers = ['"Ben Berg"', '"ben"', '"Who"', '"Al"', '"…"', '""', "7", "null", '["ben"]'];
  const index = await openIndex();
  for (const [n, speaker] of speakers.entries()) {
    index.apply([await said(`${n}.md`, String(n), `{"speaker": ${speaker}}`, "kite")]);
  }
  const found = await conversation(index, "Who is BEN, the al? A kite");
  const named = found.filter(({ score }) => score > 1).map(({ path }) => path);
  assert.deepEqual(named, ["1.md", "2.md", "3.md"]);
  assert.equal(found.length, speakers.length);
});

const [vector = Float32Array.of()] = await new FeatureHash().embed(["walk the zebra"]);

test("changes leave the conversations of a new index", async () => {
  const below = numbersBelow();
  const words = ["walking", "walks", "zebra", "the", "runner", "why?", "Ana"];
  const query = "walk the zebra walk";
  const index = await openIndex();
  const documents = new Map<string, IndexedDocument>();
  for (let step = 0; step < 3000; step++) {
    const path = String(below(40));
    if (documents.delete(path) && below(3) === 0) {
      index.apply([], [path]);
    } else {
      const text = () => Array.from({ length: 1 + below(9) }, () => words[below(7)]).join(" ");
      const session = ["", "s", "t"][below(3)] ?? "";
      const more = { index: below(9), speaker: ["Ana", "Zebra", 7][below(3)] };
      const texts = Array.from({ length: 1 + below(2) }, text);
      documents.set(path, await said(path, session, JSON.stringify(more), ...texts));
      index.apply([...documents.values()].slice(-1));
    }
    if (step % 50 !== 0) continue;
    const fresh = await openIndex();
    fresh.apply([...documents.values()].reverse());
    assert.equal(index.search(query).hasTurns, fresh.search(query).hasTurns);
    for (const compared of [undefined, vector]) {
      const found = await conversation(index, query, compared);
      assert.deepEqual(found, await conversation(fresh, query, compared), `step ${step}`);
      if (compared) assert.equal(found.length, index.counts().chunks);
    }
  }
});

test("many chunks in one session, and many without one, are in order", async () => {
  const below = numbersBelow();
  const shuffled = Array.from({ length: 2000 }, (_, n) => n).sort(() => below(3) - 1);
  const index = await openIndex();
  const turn = (n: number) => said(`${n}.md`, "s", `{"index": ${n}}`, n === 777 ? "zebra" : "lion");
  const notes = shuffled.map((n) => indexed(`note/${n}.md`, "lion"));
  index.apply(await Promise.all([...shuffled.map(turn), ...notes]));
  const paths = (await conversation(index, "zebra")).map(({ path }) => path);
  const reached = Array.from({ length: 9 }, (_, n) => `${773 + n}.md`);
  assert.deepEqual(paths.sort(), reached);
});

test("a reopened index has the turns", async (t) => {
  const folder = temporaryFolder();
  t.after(() => {
    rmSync(folder, { recursive: true });
  });
  const index = await openIndex(`${folder}/log`);
  index.apply([
    await said("a.md", "s", '{"index": 1, "speaker": "Ben"}', "kite"),
    await said("b.md", "s", '{"index": 0}', "What flies?"),
  ]);
  const before = await conversation(index, "kite of Ben");
  index.close();
  const again = await openIndex(`${folder}/log`);
  assert.deepEqual(await conversation(again, "kite of Ben"), before);
  assert.ok(again.search("").hasTurns);
  again.close();
});
