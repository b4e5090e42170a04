/** Embedders and rerankers that call services. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { document } from "../testing/daemon.js";
import { UpstreamFixture } from "../testing/fixture.js";
import { Timers } from "../testing/timers.js";
import { until } from "../testing/until.js";
import { embeddings, json, silence, SILENCE_MS, status } from "../testing/upstream.js";

const fixture = new UpstreamFixture();

const EMBEDDER = { JB_EMBED_PROVIDER: "openai", JB_EMBED_MODEL: "e", JB_EMBED_QUERY_PREFIX: "q: " };
const search = (more: object = {}) =>
  fixture.daemon.send("POST", "/v1/brains/b/search", { query: "zebra", mode: "semantic", ...more });

test("embeds chunks 64 per call, and queries with their prefix", async () => {
  await fixture.start(EMBEDDER);
  fixture.upstream.script(embeddings);
  const documents = Array.from({ length: 70 }, (_, n) => document(`${n}.md`, "zebra"));
  await fixture.daemon.send("POST", "/v1/brains/b/ingest/batch", { documents });
  const sizes = fixture.upstream.received.map(({ body }) => (body.input as string[]).length);
  assert.deepEqual(sizes, [64, 6]);
  assert.equal(fixture.upstream.received[0]?.body.encoding_format, "float");
  const answer = await search();
  assert.equal((answer.json.chunks as unknown[]).length, 10);
  assert.deepEqual(fixture.upstream.received.at(-1)?.body.input, ["q: zebra"]);
});

/** Let the silence of an upstream that has received the next request be over at once. */
async function endSilence(timers: Timers): Promise<void> {
  const requests = fixture.upstream.received.length;
  await until(() => fixture.upstream.received.length > requests);
  timers.expire(SILENCE_MS);
}

const vectors = (...list: unknown[]) =>
  json(() => ({ data: list.map((embedding, index) => ({ index, embedding })) }));

for (const [name, respond, code] of [
  ["too few vectors", vectors(), 502],
  ["too many vectors", vectors([1, 2], [1, 2]), 502],
  ["other dimensions", vectors([1, 2, 3]), 502],
  ["no numbers", vectors(["1", 2]), 502],
  ["an infinite number", status(200, '{"data":[{"index":0,"embedding":[1e999,1]}]}'), 502],
  ["invalid JSON", status(200, "{"), 502],
  ["a rejection", status(400), 502],
  ["silence", silence, 504],
] as const) {
  test(`an embedder that returns ${name}: ${code}, and nothing is stored`, async (t) => {
    await fixture.start(EMBEDDER);
    fixture.upstream.script(embeddings);
    await fixture.ingest("a.md", "zebra");
    fixture.upstream.script(respond);
    const timers = new Timers(t);
    for (const call of [() => fixture.ingest("b.md", "zebra"), search]) {
      if (respond === silence) void endSilence(timers);
      assert.equal((await call()).status, code);
    }
    assert.equal((await fixture.daemon.send("GET", "/v1/brains/b")).json.documents, 1);
  });
}

const RERANK = { ...EMBEDDER, JB_EMBED_PROVIDER: "fake", JB_RERANK_MODEL: "r" };

interface Ranked {
  chunks: { path: string; score: number }[];
  trace: Record<string, unknown>;
}

async function rerankedSearch(more: object = {}): Promise<Ranked> {
  const request = { mode: "hybrid-rerank", ...more };
  return (await search(request)).json as unknown as Ranked;
}

test("an http reranker sorts the top chunks, and the rest follow", async () => {
  const url = `${fixture.upstream.address}/rerank`;
  const key = { JB_RERANK_API_KEY: "rk-secret" };
  await fixture.start({ ...RERANK, JB_RERANK_PROVIDER: "http", JB_RERANK_URL: url, ...key });
  for (const [path, text] of [
    ["a.md", "zebra"],
    ["b.md", "zebra crossing"],
    ["c.md", "zebra crossing ahead"],
  ] as const) {
    await fixture.ingest(path, text);
  }
  fixture.upstream.script(
    json(() => ({
      results: [
        { index: 1, relevance_score: 9 },
        { index: 0, relevance_score: 0.5 },
      ],
    })),
  );
  const { chunks, trace } = await rerankedSearch({ rerankTopN: 2 });
  assert.equal(fixture.upstream.received[0]?.path, "/rerank");
  assert.equal(fixture.upstream.received[0].headers.authorization, "Bearer rk-secret");
  assert.deepEqual(fixture.upstream.received[0].body, {
    model: "r",
    query: "zebra",
    documents: ["zebra", "zebra crossing"],
    top_n: 2,
  });
  assert.deepEqual(
    chunks.map(({ path, score }) => [path, score]),
    [
      ["b.md", 9],
      ["a.md", 0.5],
      ["c.md", -1.5],
    ],
  );
  assert.equal(trace.effectiveMode, "hybrid-rerank");
  assert.equal(trace.reranked, true);
  assert.equal(trace.rerankProvider, "http");
  assert.deepEqual((await rerankedSearch({ rerankTopN: 2, topK: 1 })).chunks, chunks.slice(0, 1));
});

test("the placeholder for the key of a reranker is not redacted", async () => {
  const url = `${fixture.upstream.address}/rerank`;
  await fixture.start({ ...RERANK, JB_RERANK_PROVIDER: "http", JB_RERANK_URL: url });
  await fixture.ingest("a.md", "zebra");
  const message = "none of the documents has a text";
  fixture.upstream.script(status(400, JSON.stringify({ error: { message } })));
  const { json } = await search({ mode: "hybrid-rerank" });
  assert.equal(json.detail, `reranker: 400 ${message}`);
});

const completion = (content: string) =>
  json(() => ({ choices: [{ index: 0, message: { role: "assistant", content } }] }));

test("a language model reranks", async () => {
  await fixture.start({
    ...RERANK,
    JB_RERANK_PROVIDER: "llm",
    JB_LLM_PROVIDER: "openai",
    JB_LLM_MODEL: "m",
  });
  await fixture.ingest("a.md", "zebra");
  fixture.upstream.script(completion('Sure: {"scores": [7.5]}'));
  const { chunks, trace } = await rerankedSearch();
  assert.equal(chunks[0]?.score, 7.5);
  assert.equal(trace.rerankProvider, "llm");
  assert.equal(fixture.upstream.received[0]?.body.model, "r");
  assert.ok(!("stream" in fixture.upstream.received[0].body));
  fixture.upstream.script(completion('{"scores": [1, 2]}'));
  assert.equal((await search({ mode: "hybrid-rerank" })).status, 502);
});

test("accepts very large scores", async () => {
  const url = `${fixture.upstream.address}/rerank`;
  await fixture.start({ ...RERANK, JB_RERANK_PROVIDER: "http", JB_RERANK_URL: url });
  await fixture.ingest("a.md", "zebra");
  await fixture.ingest("b.md", "zebra");
  const results = [
    { index: 0, relevance_score: -1e300 },
    { index: 1, relevance_score: 1e300 },
  ];
  fixture.upstream.script(json(() => ({ results })));
  const { chunks } = await rerankedSearch();
  assert.deepEqual(
    chunks.map(({ path, score }) => [path, score]),
    [
      ["b.md", 1e300],
      ["a.md", -1e300],
    ],
  );
});

for (const [name, respond, code] of [
  ["no scores", json(() => ({ results: [] })), 502],
  ["a score for no document", json(() => ({ results: [{ index: 1, relevance_score: 1 }] })), 502],
  ["no number", json(() => ({ results: [{ index: 0, relevance_score: "1" }] })), 502],
  ["an infinite number", status(200, '{"results":[{"index":0,"relevance_score":1e999}]}'), 502],
  ["a rejection", status(400), 502],
  ["failures only", status(500, "{}", { "Retry-After": "0" }), 502],
  ["invalid JSON", status(200, "<p>"), 502],
  ["silence", silence, 504],
] as const) {
  test(`an http reranker that returns ${name}: ${code}`, async (t) => {
    const url = `${fixture.upstream.address}/rerank`;
    await fixture.start({ ...RERANK, JB_RERANK_PROVIDER: "http", JB_RERANK_URL: url });
    await fixture.ingest("a.md", "zebra");
    fixture.upstream.script(respond);
    if (respond === silence) void endSilence(new Timers(t));
    assert.equal((await search({ mode: "hybrid-rerank" })).status, code);
    assert.equal(fixture.upstream.received[0]?.headers.authorization, undefined);
    assert.equal((await search({ mode: "hybrid" })).status, 200);
    assert.equal(fixture.upstream.received.length, name === "failures only" ? 3 : 1);
  });
}
