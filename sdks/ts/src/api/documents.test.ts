import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";

import { type Answer, document, FAKES, TestDaemon } from "../testing/daemon.js";

let http: TestDaemon;

before(async () => {
  http = await TestDaemon.start(FAKES);
});

after(() => http.stop());

beforeEach(() => http.send("POST", "/v1/brains", { brainId: "b" }));

afterEach(() =>
  http.send("DELETE", "/v1/brains/b", undefined, { headers: { "X-Confirm-Delete": "yes" } }),
);

const DOCUMENTS = "/v1/brains/b/documents";
const at = (route: string, parameters: Record<string, string>) =>
  `${DOCUMENTS}${route}?${new URLSearchParams(parameters).toString()}`;

const put = (path: string, content: string | Buffer) => http.send("PUT", at("", { path }), content);
const append = (path: string, content: string | Buffer) =>
  http.send("POST", at("/append", { path }), content);
const read = (path: string) => http.send("GET", at("/read", { path }));
const remove = (path: string) => http.send("DELETE", at("", { path }));
const rename = (from: string, to: string) => http.send("POST", `${DOCUMENTS}/rename`, { from, to });
const batch = (...ops: object[]) => http.send("POST", `${DOCUMENTS}/batch-ops`, { ops });
const batchBy = (author: string) =>
  http.send("POST", `${DOCUMENTS}/batch-ops`, { ops: [write("a")], author });
const ingest = (path: string, text: string, more: object = {}) =>
  http.send("POST", "/v1/brains/b/ingest/file", document(path, text, more));

const write = (path: string, text = "x") => ({
  type: "write",
  path,
  content_base64: Buffer.from(text).toString("base64"),
});

async function paths(parameters: Record<string, string> = { recursive: "true" }) {
  const { json } = await http.send("GET", at("", parameters));
  return (json.items as { path: string }[]).map(({ path }) => path);
}

async function searchPaths(query: string, more: object = {}): Promise<string[]> {
  const { json } = await http.send("POST", "/v1/brains/b/search", { query, mode: "bm25", ...more });
  return (json.chunks as { path: string }[]).map(({ path }) => path);
}

test("a written document is read back byte for byte and found", async () => {
  const content = Buffer.from("zebra\0\r\n\ufeff é");
  assert.equal((await put("a b/ü.md", content)).status, 204);
  const response = await http.fetch("GET", at("/read", { path: "a b/ü.md" }));
  assert.deepEqual(Buffer.from(await response.arrayBuffer()), content);
  const headers = ["Content-Type", "Content-Length", "Cache-Control", "X-Content-Type-Options"];
  assert.deepEqual(
    headers.map((name) => response.headers.get(name)),
    ["application/octet-stream", String(content.length), "no-store", "nosniff"],
  );
  assert.deepEqual(await searchPaths("zebra"), ["a b/ü.md"]);
  await put("a b/ü.md", "giraffe");
  assert.deepEqual(await searchPaths("zebra"), []);
  assert.deepEqual(await searchPaths("giraffe"), ["a b/ü.md"]);
});

test("an empty document is a document", async () => {
  assert.equal((await put("a.md", "")).status, 204);
  const { status, headers, text } = await read("a.md");
  assert.deepEqual([status, headers.get("Content-Length"), text], [200, "0", ""]);
  assert.equal((await http.send("GET", "/v1/brains/b")).json.documents, 1);
});

test("append extends a document or creates it", async () => {
  assert.equal((await append("a.md", "zeb")).status, 204);
  assert.equal((await append("a.md", "ra")).status, 204);
  assert.equal((await read("a.md")).text, "zebra");
  assert.deepEqual(await searchPaths("zebra zeb"), ["a.md"]);
  assert.deepEqual(await searchPaths("zeb"), []);
});

test("concurrent appends lose nothing", async () => {
  await Promise.all(Array.from({ length: 20 }, () => append("a.md", "ab")));
  assert.equal((await read("a.md")).text, "ab".repeat(20));
});

test("HEAD, stat and listing report what exists and are not cached", async () => {
  await put("f/a.md", "zebra");
  const file = await http.send("GET", at("/stat", { path: "f/a.md" }));
  assert.match(String(file.json.mtime), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/);
  const { mtime } = file.json;
  assert.deepEqual(file.json, { path: "f/a.md", size: 5, mtime, is_dir: false });
  const folder = (await http.send("GET", at("/stat", { path: "f" }))).json;
  assert.deepEqual([folder.size, folder.is_dir], [0, true]);
  for (const [method, route, path, status] of [
    ["HEAD", "", "f/a.md", 200],
    ["HEAD", "", "f", 404],
    ["HEAD", "", "f/b.md", 404],
    ["HEAD", "", "..", 400],
    ["GET", "/read", "f/a.md", 200],
    ["GET", "/read", "f", 404],
    ["GET", "/stat", "f/a.md/x", 404],
    ["GET", "", "", 200],
  ] as const) {
    const answer = await http.send(method, at(route, { path }));
    assert.equal(answer.status, status, `${method} ${route} ${path}`);
    assert.equal(answer.headers.get("Cache-Control"), "no-store");
    if (method === "HEAD") assert.equal(answer.text, "");
  }
});

test("delete removes a document everywhere, and the folders that it leaves empty", async () => {
  await ingest("f/g/a.md", "zebra", { title: "T" });
  assert.equal((await remove("f/g/a.md")).status, 204);
  assert.deepEqual(await searchPaths("zebra"), []);
  assert.deepEqual(await paths({ include_generated: "true" }), []);
  assert.equal((await http.send("GET", at("/stat", { path: "f" }))).status, 404);
  assert.equal((await http.send("GET", "/v1/brains/b")).json.documents, 0);
  for (const path of ["f/g/a.md", "f"]) assert.equal((await remove(path)).status, 404);
  assert.equal((await put("f", "zebra")).status, 204);
});

test("rename moves a document with its sidecar, replacing the target", async () => {
  await ingest("a.md", "zebra", { title: "A", tags: ["t"] });
  await ingest("b.md", "giraffe", { title: "B" });
  assert.equal((await rename("a.md", "b.md")).status, 204);
  assert.deepEqual(await paths(), ["b.md"]);
  assert.deepEqual(await searchPaths("zebra giraffe", { filters: { tags: ["t"] } }), ["b.md"]);
  assert.equal((await rename("b.md", "b.md")).status, 204);
  assert.equal((await rename("a.md", "a.md")).status, 404);
  assert.equal((await rename("a.md", "c.md")).status, 404);
  assert.equal((await rename("b.md", "b.md/c/d.md")).status, 204);
  assert.equal((await rename("b.md/c/d.md", "b.md")).status, 204);
  assert.deepEqual(await searchPaths("zebra", { filters: { tags: ["t"] } }), ["b.md"]);
  assert.deepEqual(await paths({}), ["b.md"]);
});

test("a sidecar survives writes and is deleted with its document", async () => {
  await ingest("a.md", "zebra", { title: "A", tags: ["t"] });
  await put("a.md", "giraffe");
  await append("a.md", " neck");
  const tagged = { filters: { tags: ["t"] } };
  assert.deepEqual(await searchPaths("neck", tagged), ["a.md"]);
  await batch({ type: "delete", path: "a.md" }, write("a.md", "zebra"));
  assert.deepEqual(await searchPaths("zebra", tagged), []);
  assert.deepEqual(await searchPaths("zebra"), ["a.md"]);
});

const LISTED = ["_g/a.md", "_h.md", "a.md", "f/_h.md", "f/b.txt", "f/g/c.md", "\uffee.md", "😀.md"];

for (const [parameters, expected] of [
  [{}, ["a.md", "f", "\uffee.md", "😀.md"]],
  [{ include_generated: "true" }, ["_g", "_h.md", "a.md", "f", "\uffee.md", "😀.md"]],
  [{ recursive: "true", include_generated: "true" }, LISTED],
  [{ recursive: "true" }, ["_g/a.md", "a.md", "f/b.txt", "f/g/c.md", "\uffee.md", "😀.md"]],
  [{ dir: "f" }, ["f/b.txt", "f/g"]],
  [{ dir: "f", recursive: "true", glob: "*.md" }, ["f/g/c.md"]],
  [{ glob: "?.md" }, ["a.md", "\uffee.md", "😀.md"]],
  [{ glob: "f" }, ["f"]],
  [{ glob: "" }, []],
  [{ dir: "a.md" }, []],
  [{ dir: "nowhere" }, []],
] as [Record<string, string>, string[]][]) {
  test(`lists ${JSON.stringify(parameters)}`, async () => {
    await batch(...LISTED.map((path) => write(path)));
    assert.deepEqual(await paths(parameters), expected);
  });
}

test("ops are applied in order, each to the result of the previous ones", async () => {
  await put("a.md", "zebra");
  const answer = await batch(
    { type: "append", path: "a.md", content_base64: "IQ==", to: 7 },
    { type: "rename", path: "a.md", to: "b.md", content_base64: 7 },
    write("a.md", "giraffe"),
    { type: "append", path: "new.md", content_base64: "" },
    { type: "rename", path: "b.md", to: "b.md" },
    { type: "delete", path: "new.md" },
    { type: "rename", path: "a.md", to: "a.md/c" },
  );
  assert.deepEqual([answer.status, answer.json], [200, { committed: 7 }]);
  assert.deepEqual(await paths(), ["a.md/c", "b.md"]);
  assert.equal((await read("b.md")).text, "zebra!");
  assert.deepEqual(await searchPaths("zebra giraffe"), ["a.md/c", "b.md"]);
});

const rejectedOps: [op: object, status: number][] = [
  [{ type: "delete", path: "missing" }, 404],
  [{ type: "rename", path: "missing", to: "b" }, 404],
  [write("a.md/b"), 409],
  [{ type: "copy", path: "a.md" }, 400],
  [{ path: "a.md" }, 400],
  [{ type: "delete" }, 400],
  [{ type: "write", path: "b" }, 400],
  [{ type: "write", path: "b", content_base64: "YQ" }, 400],
  [{ type: "append", path: "b", content_base64: null }, 400],
  [write("../b"), 400],
  [{ type: "rename", path: "a.md" }, 400],
  [{ type: "rename", path: "a.md", to: "b//c" }, 400],
];

for (const [op, status] of rejectedOps) {
  test(`${status}, and nothing changed: ${JSON.stringify(op)}`, async () => {
    await put("a.md", "zebra");
    const answer = await batch(
      write("new.md"),
      { type: "delete", path: "a.md" },
      write("a.md"),
      op,
    );
    assert.equal(answer.status, status);
    assert.match(String(answer.json.detail), /^ops\[3\]/);
    assert.deepEqual(await paths(), ["a.md"]);
    assert.equal((await read("a.md")).text, "zebra");
  });
}

const limits: [name: string, send: () => Promise<Answer>, status: number][] = [
  ["no ops", () => batch(), 400],
  ["an author of 4,096 bytes", () => batchBy("é".repeat(2048)), 200],
  ["an author of 4,097 bytes", () => batchBy(`${"é".repeat(2048)}x`), 400],
  ["1,025 ops", () => batch(...Array<object>(1025).fill(write("a"))), 413],
  ["8 MiB", () => batch(write("a", "x".repeat(2 ** 23))), 200],
  ["more than 8 MiB", () => batch(write("a", "x".repeat(2 ** 23)), write("b")), 413],
  ["a document of 2 MiB", () => put("a", Buffer.alloc(2 ** 21)), 204],
  ["a larger document", () => put("a", Buffer.alloc(2 ** 21 + 1)), 413],
  ["a larger append", () => append("a", Buffer.alloc(2 ** 21 + 1)), 413],
  ["a body over the general limit", () => put("a", Buffer.alloc(2 ** 24 + 1)), 413],
  [
    "a reason that is not a string",
    () => http.send("POST", `${DOCUMENTS}/batch-ops`, { ops: [write("a")], reason: 1 }),
    400,
  ],
];

for (const [name, send, status] of limits) {
  test(`${status}: ${name}`, async () => {
    assert.equal((await send()).status, status);
    assert.equal((await paths()).length, status < 300 ? 1 : 0);
  });
}

for (const [method, url, status] of [
  ["GET", "/v1/brains/unknown/documents?recursive=maybe", 404],
  ["PUT", "/v1/brains/unknown/documents?path=a", 404],
  ["GET", `${DOCUMENTS}?recursive=`, 400],
  ["GET", `${DOCUMENTS}?include_generated=1`, 400],
  ["GET", `${DOCUMENTS}?dir=f/`, 400],
  ["GET", `${DOCUMENTS}?dir=a&dir=b`, 400],
  ["GET", `${DOCUMENTS}/read`, 400],
  ["PUT", `${DOCUMENTS}?path=%2e%2e%2fa`, 400],
  ["DELETE", `${DOCUMENTS}?path=`, 400],
  ["POST", `${DOCUMENTS}/rename`, 400],
  ["PATCH", DOCUMENTS, 405],
  ["GET", `${DOCUMENTS}/append`, 405],
] as const) {
  test(`${status}: ${method} ${url}`, async () => {
    const answer = await http.send(method, url);
    assert.equal(answer.status, status);
    assert.equal(answer.json.status, status);
  });
}

test("Allow lists HEAD, a separate route here", async () => {
  const { headers } = await http.send("PATCH", DOCUMENTS);
  assert.equal(headers.get("Allow"), "DELETE, GET, HEAD, PUT");
});

test("links are not followed", async () => {
  const outside = join(http.root, "outside");
  mkdirSync(outside, { recursive: true });
  writeFileSync(join(outside, "secret.md"), "zebra");
  const brain = join(http.root, "brains/b");
  symlinkSync(outside, join(brain, "folder"));
  symlinkSync(join(outside, "secret.md"), join(brain, "link.md"));
  for (const path of ["folder/secret.md", "link.md"]) {
    assert.equal((await read(path)).status, 404);
    assert.equal((await http.send("GET", at("/stat", { path }))).status, 404);
    assert.equal((await remove(path)).status, 404);
    assert.equal((await rename(path, "x.md")).status, 404);
  }
  for (const dir of ["", "folder"]) assert.deepEqual(await paths({ dir, recursive: "true" }), []);
  assert.deepEqual(await paths({}), []);
  assert.equal((await put("folder/secret.md", "x")).status, 409);
  assert.equal((await ingest("folder/new.md", "x")).status, 409);
  assert.equal((await put("link.md", "x")).status, 204);
  assert.equal(readFileSync(join(outside, "secret.md"), "utf8"), "zebra");
});

test("a write whose client disconnects in mid-body stores nothing", async () => {
  const channel = "http.server.request.start";
  const received = new Promise<IncomingMessage>((resolve) => {
    const receive = (message: unknown) => {
      unsubscribe(channel, receive);
      resolve((message as { request: IncomingMessage }).request);
    };
    subscribe(channel, receive);
  });
  const socket = connect(Number(new URL(http.daemon.address).port), "127.0.0.1");
  socket.write(
    `PUT ${DOCUMENTS}?path=a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf`,
  );
  const request = await received;
  socket.destroy();
  await new Promise((resolve) => request.once("close", resolve));
  assert.deepEqual(await paths(), []);
});
