/** Drives the client for `memconform client`; sdks/DRIVER.md describes the lines. */

import { CallError, type JsonObject, MemoryClient } from "./client.js";
import { encode } from "./json.js";

interface Command {
  id: number;
  call: "ask" | "search" | "ingest";
  baseUrl: string;
  brain: string;
  body: JsonObject;
  token: string | null;
  idleMs: number;
  deadlineMs: number;
  retries: number;
  cancelAfter: number | null;
}

const CLAIMS = ["ask", "search", "ingest", "token", "idle", "deadline", "cancel", "retry"];
const clients = new Map<string, MemoryClient>();

function write(line: JsonObject): void {
  process.stdout.write(`${encode(line)}\n`);
}

function clientOf({ baseUrl, token, idleMs, deadlineMs, retries }: Command): MemoryClient {
  const key = JSON.stringify([baseUrl, token, idleMs, deadlineMs, retries]);
  let client = clients.get(key);
  if (client === undefined) {
    const options = { token: token ?? undefined, idleMs, deadlineMs, retries };
    client = new MemoryClient(baseUrl, options);
    clients.set(key, client);
  }
  return client;
}

/** Make a call; the last line of it, without its id. */
async function run(command: Command): Promise<JsonObject> {
  const { id, call, brain, body, cancelAfter } = command;
  const client = clientOf(command);
  if (call === "search") return { ok: await client.search(brain, body) };
  if (call === "ingest") return { ok: await client.ingest(brain, body) };
  let count = 0;
  for await (const { name, data } of client.ask(brain, body)) {
    write({ id, event: name, data });
    if (++count === cancelAfter) return { cancelled: true };
  }
  return { ok: null };
}

function failure(error: unknown): JsonObject {
  if (!(error instanceof CallError)) return { error: { kind: "unknown", message: String(error) } };
  const { kind, status, code, message } = error;
  return { error: { kind, status, code, message } };
}

async function* lines(): AsyncGenerator<string, void, undefined> {
  // Not readline, for which U+2028 ends a line.
  let parts: string[] = [];
  for await (const read of process.stdin.setEncoding("utf-8") as AsyncIterable<string>) {
    const [first = "", ...others] = read.split("\n");
    parts.push(first);
    for (const next of others) {
      yield parts.join("");
      parts = [next];
    }
  }
}

write({ driver: "memory-ts 1.0", protocol: 1, claims: CLAIMS });
for await (const line of lines()) {
  const command = JSON.parse(line) as Command;
  const last = await run(command).catch(failure);
  write({ id: command.id, ...last });
}
