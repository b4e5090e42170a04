import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, test } from "node:test";

import { document, FAKES, TestDaemon } from "../testing/daemon.js";

const TOKEN = "s3cr3t-t0ken";

let http: TestDaemon;

before(async () => {
  http = await TestDaemon.start({ ...FAKES, JB_AUTH_TOKEN: TOKEN });
  await http.send("POST", "/v1/brains", { brainId: "b" }, as(`Bearer ${TOKEN}`));
});

after(() => http.stop());

function as(authorization: string): RequestInit {
  return { headers: { Authorization: authorization } };
}

const REQUESTS: [method: string, path: string, body?: unknown][] = [
  ["GET", "/version"],
  ["GET", "/nowhere"],
  ["GET", "/healthz/"],
  ["GET", "/%68ealthz"],
  ["GET", "/v1/brains/%ff"],
  ["GET", "/v1/brains/b%2Fsearch"],
  ["PATCH", "/v1/brains"],
  ["HEAD", "/v1/brains/b/documents?path=a"],
  ["GET", "/v1/brains/b/events"],
  ["POST", "/v1/brains", { brainId: "c" }],
  ["POST", "/v1/brains/b/ingest/file", document()],
  ["PUT", "/v1/brains/b/documents?path=a", Buffer.alloc(2 ** 20)],
  ["POST", "/v1/brains/b/search", "{"],
];

const HEADERS: [header: string | undefined, status: number][] = [
  [undefined, 401],
  ["Bearer", 401],
  ["Bearer ", 401],
  [TOKEN, 401],
  [`Basic ${TOKEN}`, 401],
  [`Bearer${TOKEN}`, 401],
  ["Bearer wrong", 403],
  [`Bearer ${TOKEN}x`, 403],
  [`Bearer ${TOKEN} ${TOKEN}`, 403],
];

for (const [method, path, body] of REQUESTS) {
  test(`without the token: ${method} ${path}`, async () => {
    for (const [header, status] of HEADERS) {
      const answer = await http.send(method, path, body, header === undefined ? {} : as(header));
      assert.equal(answer.status, status);
      assert.equal(answer.headers.get("WWW-Authenticate"), status === 401 ? "Bearer" : null);
      if (method === "HEAD") continue;
      assert.equal(answer.json.code, status === 401 ? "unauthorized" : "forbidden");
      assert.ok(!answer.text.includes(TOKEN));
    }
    const { json } = await http.send("GET", "/v1/brains/b", undefined, as(`Bearer ${TOKEN}`));
    assert.equal(json.documents, 0);
    const brains = await http.send("GET", "/v1/brains", undefined, as(`Bearer ${TOKEN}`));
    assert.deepEqual(brains.json.items, [{ brainId: "b" }]);
  });
}

for (const scheme of ["Bearer", "bearer", "BEARER", "Bearer "]) {
  test(`with the token: ${scheme}`, async () => {
    const answer = await http.send("GET", "/version", undefined, as(`${scheme} ${TOKEN}`));
    assert.equal(answer.status, 200);
  });
}

test("/healthz needs no token", async () => {
  assert.equal((await http.send("GET", "/healthz?x=1")).status, 200);
  assert.equal((await http.send("POST", "/healthz")).status, 405);
});

test("in absolute form, too, only /healthz needs no token", async () => {
  const socket = connect(Number(new URL(http.daemon.address).port), "127.0.0.1");
  for (const [target, status] of [
    ["http://x/healthz", 200],
    ["HTTP://x:1/healthz?y=1", 200],
    ["http://x/version", 401],
    ["http://x/version?/healthz", 401],
  ] as const) {
    socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`);
    const [answer] = (await once(socket, "data")) as [Buffer];
    assert.ok(answer.toString().startsWith(`HTTP/1.1 ${status}`), target);
  }
  socket.destroy();
});

test("two tokens are rejected, and the connection stays usable", async () => {
  const socket = connect(Number(new URL(http.daemon.address).port), "127.0.0.1");
  const header = `Authorization: Bearer ${TOKEN}\r\n`;
  const start = "POST /v1/brains HTTP/1.1\r\nHost: x\r\n";
  const body = JSON.stringify({ brainId: "twice" });
  for (const headers of [header + header, header]) {
    socket.write(`${start}${headers}Content-Length: ${body.length}\r\n\r\n${body}`);
    const [answer] = (await once(socket, "data")) as [Buffer];
    assert.match(answer.toString(), headers === header ? /^HTTP\/1.1 201/ : /^HTTP\/1.1 401/);
  }
  socket.destroy();
});
