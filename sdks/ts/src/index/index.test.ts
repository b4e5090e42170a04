import assert from "node:assert/strict";
import { test } from "node:test";

import { queryTerms } from "../text/terms.js";
import { tokens } from "../text/tokens.js";
import { best, found, indexed, numbersBelow, openIndex } from "../testing/indexes.js";
import { LEAST_WASTE } from "./index.js";

/** bm25 as the contract says it, from the texts alone, by path. */
function bm25(texts: ReadonlyMap<string, string>, query: string): Map<string, number> {
  const lengths = Array.from(texts.values(), (text) => tokens(text).length);
  const mean = lengths.reduce((sum, length) => sum + length, 0) / texts.size;
  const scores = new Map<string, number>();
  for (const [stem] of queryTerms(query).map(tokens)) {
    const counts = Array.from(texts, ([path, text]) => {
      const all = tokens(text);
      return { path, length: all.length, count: all.filter((token) => token === stem).length };
    }).filter(({ count }) => count > 0);
    const idf = Math.log((texts.size - counts.length + 0.5) / (counts.length + 0.5));
    for (const { path, length, count } of counts) {
      const norm = 1.2 * (0.25 + (0.75 * length) / mean);
      const score = ((idf > 0 ? idf : 1e-6) * count * 2.2) / (count + norm);
      scores.set(path, (scores.get(path) ?? 0) + score);
    }
  }
  return scores;
}

test("changes leave the scores of a new index", async () => {
  const below = numbersBelow();
  const words = ["walking", "walks", "zebra", "Überraschung", "的", "the", "runner"];
  const query = "walk the zebra walk überraschung";
  const index = await openIndex();
  const texts = new Map<string, string>();
  for (let step = 0; step < 3 * LEAST_WASTE; step++) {
    const path = String(below(40));
    if (texts.delete(path) && below(3) === 0) {
      index.apply([], [path]);
    } else {
      const text = Array.from({ length: 1 + below(9) }, () => words[below(7)]).join(" ");
      texts.set(path, text);
      index.apply([await indexed(path, text)]);
    }
    if (step % 100 !== 0) continue;
    const expected = bm25(texts, query);
    const search = index.search(query);
    const hits = await search.keyword(100);
    assert.equal(hits.length, expected.size);
    for (const { slot, score } of hits) {
      const { path, text } = search.chunk(slot);
      assert.equal(text, texts.get(path));
      assert.ok(Math.abs(score - (expected.get(path) ?? 0)) < 2e-9, `${step}: ${path}`);
    }
  }
  assert.equal(index.counts().documents, texts.size);
});

test("documents keep their chunks and vectors when free slots are dropped", async () => {
  const index = await openIndex();
  for (let n = 0; n < 5; n++) index.apply([await indexed(`${n}.md`, `animal${n}`, `owner${n}`)]);
  const changing = await indexed("changing.md", "plant");
  for (let n = 0; n < LEAST_WASTE + 50; n++) index.apply([changing]);
  index.apply([], ["1.md"]);
  for (const n of [0, 2, 3, 4]) {
    const search = index.search(`owner${n}`);
    const [hit] = await search.keyword(1);
    assert.ok(hit !== undefined && hit.slot < 100);
    const { path, ordinal, text } = search.chunk(hit.slot);
    assert.deepEqual([path, ordinal, text], [`${n}.md`, 1, `owner${n}`]);
    assert.equal(await best(index, `animal${n}`), `${n}.md`);
  }
  assert.deepEqual(index.counts(), { documents: 5, chunks: 9, vectors: 9 });
});

test("a term of several tokens is a phrase", async () => {
  // A letter for the contract, and a separator for SQLite's tokenizer.
  const letter = "\u1cf2";
  const index = await openIndex();
  index.apply([
    await indexed("a.md", "lions zebras, lion zebra"),
    await indexed("b.md", "zebra lion"),
    await indexed("c.md", "lion"),
    await indexed("d.md", "lion zebra"),
  ]);
  index.apply([], ["d.md"]);
  assert.deepEqual(await found(index, `lion${letter}zebra`), ["a.md"]);
  assert.deepEqual(await found(index, letter + letter), []);
  assert.deepEqual(await found(index, `lion${letter}okapi`), []);
});

test("when all is gone, vectors may have other dimensions", async () => {
  const index = await openIndex();
  index.apply([await indexed("a.md", "zebra")]);
  const vector = new Float32Array(20_000);
  vector[19_999] = 1;
  const other = { ...(await indexed("b.md", "lion")), vectors: [vector] };
  assert.throws(() => {
    index.apply([other]);
  }, /20000 dimensions, but the index has 256/);
  index.apply([], ["a.md"]);
  index.apply([other]);
  assert.deepEqual(index.counts(), { documents: 1, chunks: 1, vectors: 1 });
  const [hit] = await index.search("").semantic(vector, 1, "cosine");
  assert.equal(hit?.score, 1);
});
