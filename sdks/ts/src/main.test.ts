import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { document, FAKES, temporaryFolder } from "./testing/daemon.js";

const MAIN = fileURLToPath(new URL("main.js", import.meta.url));

function memory(args: string[], env: Record<string, string> = {}) {
  const PATH = process.env.PATH ?? "";
  return spawn(process.execPath, [MAIN, ...args], {
    env: { PATH, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** Start a daemon on `root` and read its address from the first line of standard output. */
async function startDaemon(root: string, env: Record<string, string> = FAKES) {
  const child = memory(["serve", "--addr", "127.0.0.1:0", "--root", root], env);
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  assert.match(line, /^listening on http:\/\/127\.0\.0\.1:[0-9]+$/);
  return { child, address: line.replace("listening on ", "") };
}

async function exitCode(child: ChildProcess): Promise<number | null> {
  const [code] = (await once(child, "exit")) as [number | null];
  return code;
}

async function post(url: string, body: object): Promise<Response> {
  return fetch(url, { method: "POST", body: JSON.stringify(body) });
}

const invalidStarts: [args: string[], env: Record<string, string>, message: RegExp][] = [
  [[], {}, /usage: memory serve/],
  [["serve"], {}, /--root or JB_HOME/],
  [["serve", "--root", "x", "--auth-token", ""], { JB_AUTH_TOKEN: "t" }, /^memory: the token.*\n$/],
  [["serve", "--root", "x"], { JB_AUTH_TOKEN: "" }, /^memory: the token.*\n$/],
  [["serve", "--root", "x"], { JB_LLM_PROVIDER: "gpt" }, /^memory: JB_LLM_PROVIDER=gpt/],
];

for (const [args, env, message] of invalidStarts) {
  test(`status 2: ${args.join(" ")} ${JSON.stringify(env)}`, async () => {
    const child = memory(args, env);
    const [code, output, errors] = await Promise.all([
      exitCode(child),
      text(child.stdout),
      text(child.stderr),
    ]);
    assert.equal(code, 2);
    assert.equal(output, "");
    assert.match(errors, message);
  });
}

test("an unusable state folder exits with one line and status 1", async () => {
  const file = join(temporaryFolder(), "file");
  writeFileSync(file, "");
  for (const bad of [file, join(file, "below"), "/proc/nowhere"]) {
    const child = memory(["serve", "--addr", "127.0.0.1:0", "--root", bad]);
    const [code, errors] = await Promise.all([exitCode(child), text(child.stderr)]);
    assert.equal(code, 1);
    assert.match(errors, /^memory: cannot keep state in \S+: [A-Z]+\n$/);
  }
});

test("--auth-token overrides JB_AUTH_TOKEN and is never logged", async () => {
  const env = { ...FAKES, JB_AUTH_TOKEN: "of-the-variable" };
  const args = ["serve", "--addr", "127.0.0.1:0", "--root", temporaryFolder()];
  const child = memory([...args, "--auth-token", "of-the-option"], env);
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  const lines = text(child.stderr);
  const statuses = ["of-the-variable", "of-the-option"].map(async (token) => {
    const headers = { Authorization: `Bearer ${token}` };
    return (await fetch(`${line.replace("listening on ", "")}/v1/brains`, { headers })).status;
  });
  assert.deepEqual(await Promise.all(statuses), [403, 200]);
  child.kill("SIGTERM");
  assert.equal(await exitCode(child), 0);
  assert.ok(!(await lines).includes("of-the"));
});

test("a port in use exits with status 1", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const address = other.address();
  assert.ok(typeof address === "object" && address !== null);
  const addr = `127.0.0.1:${address.port}`;
  const child = memory(["serve", "--addr", addr, "--root", temporaryFolder()]);
  const [code, errors] = await Promise.all([exitCode(child), text(child.stderr)]);
  other.close();
  assert.equal(code, 1);
  assert.match(errors, new RegExp(`^memory: cannot listen on ${addr}: EADDRINUSE$`, "m"));
});

test("acknowledged writes survive a kill", async () => {
  const root = temporaryFolder();
  const first = await startDaemon(root);
  await post(`${first.address}/v1/brains`, { brainId: "b" });
  const stored = await post(`${first.address}/v1/brains/b/ingest/file`, document());
  assert.equal(stored.status, 200);
  first.child.kill("SIGKILL");
  await exitCode(first.child);
  const second = await startDaemon(root);
  const found = await post(`${second.address}/v1/brains/b/search`, { query: "zebra" });
  assert.equal(((await found.json()) as { chunks: unknown[] }).chunks.length, 1);
  second.child.kill("SIGINT");
  assert.equal(await exitCode(second.child), 0);
});

test("SIGTERM ends open streams and the daemon even if an upstream is silent", async () => {
  const upstream = createServer().listen(0, "127.0.0.1");
  await once(upstream, "listening");
  const address = upstream.address();
  assert.ok(typeof address === "object" && address !== null);
  const { child, address: daemon } = await startDaemon(temporaryFolder(), {
    JB_LLM_PROVIDER: "ollama",
    JB_LLM_MODEL: "m",
    OLLAMA_HOST: `127.0.0.1:${address.port}`,
  });
  await post(`${daemon}/v1/brains`, { brainId: "b" });
  const changes = await fetch(`${daemon}/v1/brains/b/events`);
  const stream = await post(`${daemon}/v1/brains/b/ask`, { question: "zebra" });
  child.kill("SIGTERM");
  // An answer that is still open after the grace period is cut, and its text fails.
  const [code, events] = await Promise.all([exitCode(child), stream.text()]);
  upstream.close();
  assert.equal(code, 0);
  assert.equal(await changes.text(), "event: ready\ndata: ok\n\n");
  assert.match(events, /event: error\ndata: .*stopping[^]*event: done\ndata: \{"ok":false\}\n\n$/);
});
