import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, afterEach, before, test } from "node:test";

import { document, FAKES, TestDaemon } from "../testing/daemon.js";

let http: TestDaemon;

before(async () => {
  http = await TestDaemon.start({ ...FAKES, MEMCONFORM_RUN_ID: "run-7" });
  await http.send("POST", "/v1/brains", { brainId: "b" });
});

after(() => http.stop());

const EMPTY = { brainId: "b", documents: 0, chunks: 0, vectors: 0, pending: 0 };

afterEach(async () => {
  await http.send("DELETE", "/v1/brains/b", undefined, { headers: { "X-Confirm-Delete": "yes" } });
  await http.send("POST", "/v1/brains", { brainId: "b" });
});

test("starts with any request timeout that the contract allows", async () => {
  for (const seconds of ["30.25", "0.0301", "301", "1000000"]) {
    const daemon = await TestDaemon.start({ JB_REQUEST_TIMEOUT: seconds });
    assert.equal((await daemon.send("GET", "/healthz")).status, 200, seconds);
    await daemon.stop();
  }
});

test("health and version", async () => {
  assert.deepEqual((await http.send("GET", "/healthz")).json, { ok: true });
  assert.deepEqual((await http.send("GET", "/version")).json, {
    name: "memoryd-ts",
    version: "0.1.0",
    contract: "1",
    runId: "run-7",
  });
});

const SEARCH = "/v1/brains/b/search";
const ASK = "/v1/brains/b/ask";
const FILE = "/v1/brains/b/ingest/file";
const BATCH = "/v1/brains/b/ingest/batch";

const search = (more: object) => ["POST", SEARCH, { query: "x", ...more }, 400] as const;
const ask = (more: object) => ["POST", ASK, { question: "x", ...more }, 400] as const;
const file = (more: object) => ["POST", FILE, { ...document(), ...more }, 400] as const;
const batch = (documents: unknown, status = 400) => ["POST", BATCH, { documents }, status] as const;

const rejected: (readonly [method: string, path: string, body: unknown, status: number])[] = [
  ["GET", "/nowhere", undefined, 404],
  ["GET", "/healthz/", undefined, 404],
  ["GET", "/v1/brains/", undefined, 404],
  ["GET", "/v1/brains/b%2Fsearch", undefined, 404],
  ["GET", "/v1/brains/%2e%2e", undefined, 404],
  ["GET", "/v1/brains/%00", undefined, 400],
  ["GET", "/v1/brains/%ff", undefined, 400],
  ["GET", `/v1/brains/${"x".repeat(129)}`, undefined, 400],
  ["GET", "/v1/brains/unknown", undefined, 404],
  ["PUT", "/v1/brains", {}, 405],
  ["PROPFIND", "/v1/brains", undefined, 405],
  ["GET", SEARCH, undefined, 405],
  ["DELETE", "/v1/brains/b", undefined, 428],
  ["DELETE", "/v1/brains/unknown", undefined, 404],
  ["POST", "/v1/brains", undefined, 400],
  ["POST", "/v1/brains", { brainId: "b" }, 409],
  ["POST", "/v1/brains", { brainId: ".." }, 400],
  ["POST", "/v1/brains", { brainId: "a b" }, 400],
  ["POST", "/v1/brains", { brainId: "a\n" }, 400],
  ["POST", "/v1/brains", { brainId: 7 }, 400],
  ["POST", "/v1/brains", { brainId: null }, 400],
  ["POST", "/v1/brains/unknown/search", { query: "x" }, 404],
  ["POST", "/v1/brains/unknown/ask", { question: "x" }, 404],
  ["POST", "/v1/brains/unknown/ingest/file", document(), 404],
  ...["", "null", "[]", '"x"', "{", "\ufeff{}"].map((body) => ["POST", SEARCH, body, 400] as const),
  ["POST", SEARCH, Buffer.from([0xff]), 400],
  ["POST", SEARCH, '{"query": "\\ud83d"}', 400],
  ["POST", SEARCH, '{"query": "x", "unknown": ["\\udc00"]}', 400],
  ["POST", SEARCH, `{"query": "x", "deep": ${"[".repeat(9e4)}${"]".repeat(9e4)}}`, 400],
  ["POST", SEARCH, Buffer.alloc(17 * 2 ** 20, 0x20), 413],
  search({ query: "" }),
  search({ query: " \t\u3000\n" }),
  search({ query: null }),
  ...[0, 1001, 1.5, "5", true, []].map((topK) => search({ topK })),
  ...[-1, 10_001, "1"].map((candidateK) => search({ candidateK })),
  ...[-1, 1001].map((rerankTopN) => search({ rerankTopN })),
  search({ mode: "magic" }),
  search({ questionDate: "yesterday" }),
  search({ filters: { colour: "red" } }),
  search({ filters: { paths: "x" } }),
  search({ filters: { tags: [1] } }),
  search({ filters: { scope: "moon" } }),
  search({ filters: [] }),
  search({ tuning: { magic: 1 } }),
  search({ tuning: { fusion: "sum" } }),
  search({ tuning: { alpha: 1.1 } }),
  search({ tuning: { rrfK: 0 } }),
  search({ tuning: { poolFactor: 1001 } }),
  search({ tuning: { poolFloor: 1.5 } }),
  search({ tuning: { kernel: "dot" } }),
  ask({ question: "" }),
  ask({ readerMode: "wild" }),
  ask({ model: 1 }),
  file({ path: undefined }),
  file({ contentType: undefined }),
  file({ contentBase64: undefined }),
  ...["", "..", "../a.md", "/etc/passwd", "a//b", "a/", "./a", "a\\b", "a\0b"].map((path) =>
    file({ path }),
  ),
  file({ path: "x".repeat(251) }),
  file({ path: "é".repeat(126) }),
  file({ path: Array<string>(11).fill("x".repeat(200)).join("/") }),
  ...["!", "YQ", "YQ=", "YQ==YQ==", "YW Jj", "YWJj\n", "_-__", "====", 5].map((contentBase64) =>
    file({ contentBase64 }),
  ),
  file({ tags: "x" }),
  file({ metadata: [] }),
  ["POST", FILE, JSON.stringify(document()).replace("}", ', "metadata": {"x": [1e999]}}'), 400],
  batch([]),
  batch({}),
  batch([null]),
  batch(Array(1025).fill(document())),
  batch([document("a"), document("a/b")], 409),
  batch([document("a.json/b"), document("a")], 409),
];

for (const [method, path, body, status] of rejected) {
  const sent = Buffer.isBuffer(body) ? `${body.length} bytes` : JSON.stringify(body ?? null);
  test(`${status}: ${method} ${path.slice(0, 60)} ${sent.slice(0, 80)}`, async () => {
    const answer = await http.send(method, path, body);
    assert.equal(answer.status, status);
    assert.equal(answer.headers.get("Content-Type"), "application/problem+json");
    assert.equal(answer.json.status, status);
    for (const key of ["title", "detail", "code"]) assert.ok(answer.json[key]);
    assert.deepEqual((await http.send("GET", "/v1/brains/b")).json, EMPTY);
  });
}

const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

for (const [levels, status] of [
  [999, 200],
  [1000, 400],
  [4 * 2 ** 20, 400],
] as const) {
  // The enclosing object is a level, too.
  test(`${status}: ${levels + 1} levels of JSON`, async () => {
    const answer = await http.send("POST", SEARCH, `{"query": "x", "deep": ${nested(levels)}}`);
    assert.equal(answer.status, status);
  });
}

test("400: unclosed brackets", async () => {
  assert.equal((await http.send("POST", SEARCH, "[".repeat(2 ** 20))).status, 400);
});

for (const levels of [64, 998]) {
  test(`metadata of ${levels} levels is stored and returned`, async () => {
    const body = JSON.stringify(document()).replace(
      /}$/,
      `,"metadata":{"deep":${nested(levels)}}}`,
    );
    assert.equal((await http.send("POST", FILE, body)).status, 200);
    const { json } = await http.send("POST", SEARCH, { query: "zebra" });
    const [chunk] = json.chunks as { metadata: { deep: unknown } }[];
    assert.equal(JSON.stringify(chunk?.metadata.deep), nested(levels));
    const events = await http.ask({ question: "zebra" });
    assert.equal(events.at(-1)?.[1].ok, true);
  });
}

test("optional keys may be null, and an integer may be written as a float", async () => {
  const nulls = { mode: null, topK: null, filters: { tags: null }, tuning: { alpha: null } };
  assert.equal((await http.send("POST", SEARCH, { query: "x", ...nulls })).status, 200);
  assert.equal((await http.send("POST", SEARCH, '{"query": "x", "topK": 5.0}')).status, 200);
});

test("unknown keys are ignored, whatever the media type", async () => {
  const headers = { "Content-Type": "text/plain" };
  const answer = await http.send("POST", SEARCH, { query: "x", colour: 1 }, { headers });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("Content-Type"), "application/json");
});

test("Allow lists every method", async () => {
  const { headers } = await http.send("PUT", "/v1/brains");
  assert.equal(headers.get("Allow"), "GET, HEAD, POST");
});

test("a conflict names its document", async () => {
  const documents = [document("a.md"), document("b.md"), document("a.md/c")];
  const { status, json } = await http.send("POST", BATCH, { documents });
  assert.equal(status, 409);
  assert.match(String(json.detail), /^documents\[2\]: /);
});

test("the detail names the invalid key", async () => {
  const documents = [document("a.md"), document("b.md", "", { contentBase64: "*" })];
  const batched = await http.send("POST", BATCH, { documents });
  assert.match(String(batched.json.detail), /^documents\[1\]\.contentBase64: /);
  const wrong = { query: "x", tuning: { alpha: 2 } };
  const searched = await http.send("POST", SEARCH, wrong);
  assert.match(String(searched.json.detail), /^tuning\.alpha: /);
});

for (const [extra, status] of [
  [0, 200],
  [1, 413],
] as const) {
  test(`8 MiB plus ${extra} bytes of content: ${status}`, async () => {
    const half = 4 * 2 ** 20;
    const whole = document("a.bin", Buffer.alloc(2 * half + extra, 0xff));
    assert.equal((await http.send("POST", FILE, whole)).status, status);
    const documents = [
      document("b.bin", Buffer.alloc(half, 0xff)),
      document("c.bin", Buffer.alloc(half + extra, 0xff)),
    ];
    assert.equal((await http.send("POST", BATCH, { documents })).status, status);
  });
}

test("an ingest reports what was stored", async () => {
  const documents = [document("a.md", "zebra"), document("_b", "x"), document("a.md", "new")];
  const { json } = await http.send("POST", BATCH, { documents });
  const items = json.items as { path: string; chunkCount: number; bytes: number }[];
  assert.deepEqual(
    items.map(({ path, chunkCount, bytes }) => [path, chunkCount, bytes]),
    [
      ["a.md", 1, 5],
      ["_b", 0, 1],
      ["a.md", 1, 3],
    ],
  );
  assert.deepEqual((await http.send("GET", "/v1/brains/b")).json, {
    ...EMPTY,
    documents: 1,
    chunks: 1,
    vectors: 1,
  });
});

for (const [more, echoed] of [
  [{ mode: "hybrid" }, { kernel: "cosine", fusion: "rrf", rrfK: 10, poolFactor: 9 }],
  [
    { mode: "hybrid", candidateK: 7 },
    { kernel: "cosine", fusion: "rrf", rrfK: 10 },
  ],
  [{ mode: "semantic" }, { kernel: "cosine" }],
  [{ mode: "bm25" }, {}],
] as const) {
  test(`echoes the applied tuning: ${JSON.stringify(more)}`, async () => {
    const common = { fusion: "rrf", rrfK: 10, alpha: 0.1, poolFactor: 9 };
    const tuning = { kernel: "cosine", ...common };
    const { json } = await http.send("POST", SEARCH, { query: "zebra", tuning, ...more });
    assert.deepEqual((json.trace as { tuning: object }).tuning, echoed);
  });
}

test("the fake reader's answer is a stream of events", async () => {
  const content = "Bees hum. The zebra sleeps. It snows.";
  await http.send("POST", FILE, document("a.md", content, { title: "" }));
  const response = await http.fetch("POST", ASK, { question: "Who sleeps? A zebra?", topK: 3 });
  assert.equal(response.headers.get("Content-Type"), "text/event-stream");
  assert.equal(response.headers.get("Cache-Control"), "no-store");
  const events = await http.ask({ question: "Who sleeps? A zebra?", topK: 3 });
  assert.deepEqual(
    events.map(([name]) => name),
    ["retrieve", ...Array<string>(3).fill("answer_delta"), "citation", "done"],
  );
  const [, retrieve] = events[0] ?? [];
  assert.equal(retrieve?.topK, 3);
  assert.equal(retrieve.mode, "bm25");
  assert.equal(events.at(-2)?.[1].title, "a.md");
  assert.deepEqual(events.at(-1)?.[1], { ok: true, answer: "The zebra sleeps." });
});

test("without a reader, ask is a bad gateway", async () => {
  const other = await TestDaemon.start({});
  await other.send("POST", "/v1/brains", { brainId: "b" });
  assert.equal((await other.send("POST", ASK, { question: "x" })).status, 502);
  await other.stop();
});

test("a description is stored", async () => {
  const made = await http.send("POST", "/v1/brains", { brainId: "d", description: "Über uns" });
  assert.equal(made.status, 201);
  assert.equal((await http.send("GET", "/v1/brains/d")).json.description, "Über uns");
  assert.deepEqual((await http.send("GET", "/v1/brains")).json.items, [
    { brainId: "b" },
    { brainId: "d" },
  ]);
});

const malformed: [request: string, status: string][] = [
  ["GARBAGE\r\n\r\n", "400"],
  ["GET /healthz HTTP/1.1\r\n\r\n", "400"],
  ["POST /v1/brains HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", "400"],
  ["GET /v1/brains/.. HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"],
  ["GET /healthz HTTP/1.1\r\nHost: \x01\r\n\r\n", "400"],
];

for (const [request, status] of malformed) {
  test(`${status}, and alive: ${JSON.stringify(request)}`, async () => {
    const port = Number(new URL(http.daemon.address).port);
    const socket = connect(port, "127.0.0.1");
    // A half-closed connection is ended by Node before a handler that waits can answer.
    socket.write(request, "latin1");
    const [answer] = (await once(socket, "data")) as [Buffer];
    assert.match(
      answer.toString(),
      new RegExp(`^HTTP/1.1 ${status} [^]*"code":"validation_error"`),
    );
    assert.equal((await http.send("GET", "/healthz")).status, 200);
  });
}

test("an aborted request leaves the daemon alive", async () => {
  const socket = connect(Number(new URL(http.daemon.address).port), "127.0.0.1");
  socket.write("POST /v1/brains HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{");
  await once(socket, "connect");
  socket.destroy();
  assert.equal((await http.send("GET", "/healthz")).status, 200);
});
