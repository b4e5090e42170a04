/** Embedders and rerankers behind services. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { document } from "../testing/daemon.js";
import { Stage } from "../testing/stage.js";
import { embeddings, json, silence, status } from "../testing/upstream.js";

const stage = new Stage();

const EMBEDDER = { JB_EMBED_PROVIDER: "openai", JB_EMBED_MODEL: "e", JB_EMBED_QUERY_PREFIX: "q: " };
const search = (more: object = {}) =>
  stage.daemon.send("POST", "/v1/brains/b/search", { query: "zebra", mode: "semantic", ...more });

test("chunks are embedded by 64 a call, queries with their prefix", async () => {
  await stage.start(EMBEDDER);
  stage.upstream.script(embeddings);
  const documents = Array.from({ length: 70 }, (_, n) => document(`${n}.md`, "zebra"));
  await stage.daemon.send("POST", "/v1/brains/b/ingest/batch", { documents });
  const sizes = stage.upstream.received.map(({ body }) => (body.input as string[]).length);
  assert.deepEqual(sizes, [64, 6]);
  assert.equal(stage.upstream.received[0]?.body.encoding_format, "float");
  const answer = await search();
  assert.equal((answer.json.chunks as unknown[]).length, 10);
  assert.deepEqual(stage.upstream.received.at(-1)?.body.input, ["q: zebra"]);
});

const vectors = (...list: unknown[]) =>
  json(() => ({ data: list.map((embedding, index) => ({ index, embedding })) }));

for (const [name, respond, code] of [
  ["too few vectors", vectors(), 502],
  ["too many vectors", vectors([1, 2], [1, 2]), 502],
  ["other dimensions", vectors([1, 2, 3]), 502],
  ["no numbers", vectors(["1", 2]), 502],
  ["an infinite number", status(200, '{"data":[{"index":0,"embedding":[1e999,1]}]}'), 502],
  ["no JSON", status(200, "{"), 502],
  ["a refusal", status(400), 502],
  ["silence", silence, 504],
] as const) {
  test(`an embedder that gives ${name}: ${code}, and nothing is stored`, async () => {
    await stage.start(EMBEDDER);
    stage.upstream.script(embeddings);
    await stage.ingest("a.md", "zebra");
    stage.upstream.script(respond);
    assert.equal((await stage.ingest("b.md", "zebra")).status, code);
    assert.equal((await search()).status, code);
    assert.equal((await stage.daemon.send("GET", "/v1/brains/b")).json.documents, 1);
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

test("an http reranker orders the first, and the rest follow", async () => {
  const url = `${stage.upstream.address}/rerank`;
  const key = { JB_RERANK_API_KEY: "rk-secret" };
  await stage.start({ ...RERANK, JB_RERANK_PROVIDER: "http", JB_RERANK_URL: url, ...key });
  for (const [path, text] of [
    ["a.md", "zebra"],
    ["b.md", "zebra crossing"],
    ["c.md", "zebra crossing ahead"],
  ] as const) {
    await stage.ingest(path, text);
  }
  stage.upstream.script(
    json(() => ({
      results: [
        { index: 1, relevance_score: 9 },
        { index: 0, relevance_score: 0.5 },
      ],
    })),
  );
  const { chunks, trace } = await rerankedSearch({ rerankTopN: 2 });
  assert.equal(stage.upstream.received[0]?.path, "/rerank");
  assert.equal(stage.upstream.received[0].headers.authorization, "Bearer rk-secret");
  assert.deepEqual(stage.upstream.received[0].body, {
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

const completion = (content: string) =>
  json(() => ({ choices: [{ index: 0, message: { role: "assistant", content } }] }));

test("a language model reranks", async () => {
  await stage.start({
    ...RERANK,
    JB_RERANK_PROVIDER: "llm",
    JB_LLM_PROVIDER: "openai",
    JB_LLM_MODEL: "m",
  });
  await stage.ingest("a.md", "zebra");
  stage.upstream.script(completion('Sure: {"scores": [7.5]}'));
  const { chunks, trace } = await rerankedSearch();
  assert.equal(chunks[0]?.score, 7.5);
  assert.equal(trace.rerankProvider, "llm");
  assert.equal(stage.upstream.received[0]?.body.model, "r");
  assert.ok(!("stream" in stage.upstream.received[0].body));
  stage.upstream.script(completion('{"scores": [1, 2]}'));
  assert.equal((await search({ mode: "hybrid-rerank" })).status, 502);
});

test("a score that is very large is a score", async () => {
  const url = `${stage.upstream.address}/rerank`;
  await stage.start({ ...RERANK, JB_RERANK_PROVIDER: "http", JB_RERANK_URL: url });
  await stage.ingest("a.md", "zebra");
  await stage.ingest("b.md", "zebra");
  const results = [
    { index: 0, relevance_score: -1e300 },
    { index: 1, relevance_score: 1e300 },
  ];
  stage.upstream.script(json(() => ({ results })));
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
  ["a refusal", status(400), 502],
  ["failures only", status(500, "{}", { "Retry-After": "0" }), 502],
  ["no JSON", status(200, "<p>"), 502],
  ["silence", silence, 504],
] as const) {
  test(`an http reranker that gives ${name}: ${code}`, async () => {
    const url = `${stage.upstream.address}/rerank`;
    await stage.start({ ...RERANK, JB_RERANK_PROVIDER: "http", JB_RERANK_URL: url });
    await stage.ingest("a.md", "zebra");
    stage.upstream.script(respond);
    assert.equal((await search({ mode: "hybrid-rerank" })).status, code);
    assert.equal(stage.upstream.received[0]?.headers.authorization, undefined);
    assert.equal((await search({ mode: "hybrid" })).status, 200);
    assert.equal(stage.upstream.received.length, name === "failures only" ? 3 : 1);
  });
}
