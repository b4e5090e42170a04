import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, test } from "node:test";

import { FAKES, TestDaemon } from "../testing/daemon.js";
import { isLoopback } from "./origin.js";

let open: TestDaemon;
let guarded: TestDaemon;

before(async () => {
  open = await TestDaemon.start();
  guarded = await TestDaemon.start({ ...FAKES, JB_AUTH_TOKEN: "hush" });
});

after(() => Promise.all([open.stop(), guarded.stop()]));

/** The status of a request with these header lines, on a connection of its own. */
async function statusOf(daemon: TestDaemon, line: string, ...headers: string[]): Promise<string> {
  const { hostname, port } = new URL(daemon.daemon.address);
  const socket = connect(Number(port), hostname);
  socket.write([line, ...headers, "Connection: close", "", ""].join("\r\n"));
  let text = "";
  for await (const piece of socket) text += String(piece);
  return text.split(" ", 2)[1] ?? "";
}

const GET = "GET /v1/brains HTTP/1.1";
const HERE = "Host: 127.0.0.1";

const REQUESTS: [status: string, line: string, ...headers: string[]][] = [
  ["200", GET, HERE],
  ["200", GET, "Host: LocalHost:1"],
  ["200", GET, "Host: 127.1.2.3:65535"],
  ["200", GET, "Host: [::1]:80"],
  ["200", GET, HERE, "Origin: http://localhost:3000"],
  ["200", GET, HERE, "Origin: https://[::1]", "Sec-Fetch-Site: cross-site"],
  ["200", GET, HERE, "Sec-Fetch-Site: same-site"],
  ["200", GET, HERE, "Sec-Fetch-Site: none"],
  ["200", "GET http://localhost/healthz HTTP/1.1", HERE],
  ["403", GET, "Host: example.com"],
  ["403", GET, "Host: localhost."],
  ["403", GET, "Host: localhost.example.com"],
  ["403", GET, "Host: 127.0.0.1.example.com"],
  ["403", GET, "Host: example.com:127"],
  ["403", GET, "Host: 127.1"],
  ["200", GET, "Host: 127.0.0.255"],
  ["403", GET, "Host: 127.0.0.256"],
  ["403", GET, "Host: 127.300.0.1:80"],
  ["403", GET, "Host: 0.0.0.0"],
  ["403", GET, "Host: ::1"],
  ["403", GET, "Host: localhost@example.com"],
  ["403", GET, "Host: "],
  ["403", GET, HERE, "Host: example.com"],
  ["403", "GET /healthz HTTP/1.0"],
  ["403", "GET /nowhere HTTP/1.1", "Host: example.com"],
  ["403", "GET /v1/brains/%ff HTTP/1.1", "Host: example.com"],
  ["403", GET, HERE, "Origin: null"],
  ["403", GET, HERE, "Origin: https://example.com"],
  ["403", GET, HERE, "Origin: http://localhost.example.com"],
  ["403", GET, HERE, "Origin: http://example.com/http://localhost"],
  ["403", GET, HERE, "Origin: file://localhost"],
  ["403", GET, HERE, "Origin: http://localhost", "Origin: http://example.com"],
  ["403", GET, HERE, "Sec-Fetch-Site: cross-site"],
];

for (const [status, ...request] of REQUESTS) {
  test(`${request.join(", ")}: ${status}`, async () => {
    const [line, ...headers] = request;
    assert.equal(await statusOf(open, line, ...headers), status);
  });
}

test("a daemon with a token serves requests from everywhere", async () => {
  const headers = ["Host: example.com", "Origin: null", "Authorization: Bearer hush"];
  assert.equal(await statusOf(guarded, GET, ...headers), "200");
});

test("a rejected request has no effect", async () => {
  const line = "DELETE /v1/brains/b HTTP/1.1";
  await open.send("POST", "/v1/brains", { brainId: "b" });
  const headers = ["X-Confirm-Delete: yes", "Origin: https://example.com"];
  assert.equal(await statusOf(open, line, HERE, ...headers), "403");
  assert.equal((await open.send("GET", "/v1/brains/b")).status, 200);
});

test("loopback addresses", () => {
  const addresses = [
    "127.0.0.1",
    "127.9.9.9",
    "::1",
    "::ffff:127.0.0.1",
    "0.0.0.0",
    "::",
    "10.0.0.1",
    "::1234",
  ];
  const local = addresses.filter((address) => isLoopback({ address, family: "", port: 1 }));
  assert.deepEqual(local, addresses.slice(0, 4));
});
