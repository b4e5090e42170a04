// Drives the npm package openai for `memconform client`; sdks/DRIVER.md describes the lines.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import OpenAI from "openai";

const { dependencies } = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8"));
// `timeout` ends with the headers of a response, so it is a limit neither of silence nor of a call.
const CLAIMS = ["ask", "token", "cancel", "retry"];

const write = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

/** Ask for a completion; resolves to the last line of the call, without its id. */
async function ask(client, { id, body, cancelAfter }) {
  const messages = [{ role: "user", content: body.question }];
  let count = 0;
  const chunks = await client.chat.completions.create({
    model: "scripted",
    messages,
    stream: true,
  });
  for await (const { choices } of chunks) {
    for (const { delta } of choices) {
      if (!delta.content) continue;
      write({ id, event: "answer_delta", data: { text: delta.content } });
      count += 1;
      if (count === cancelAfter) return { cancelled: true };
    }
  }
  return { ok: null };
}

function kindOf(error) {
  if (error instanceof OpenAI.APIConnectionTimeoutError) return "timeout";
  if (error instanceof OpenAI.APIConnectionError) return "connection";
  // An error within the stream has no status.
  if (error instanceof OpenAI.APIError) return error.status === undefined ? "daemon" : "http";
  if (error instanceof SyntaxError) return "protocol";
  // Once a stream has begun, what fetch throws comes as it is: it calls a cut body "terminated".
  return error.message === "terminated" ? "cut" : "unknown";
}

write({ driver: `openai ${dependencies.openai}`, protocol: 1, claims: CLAIMS, wire: "openai" });
const clients = new Map();
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  const { baseUrl, token, idleMs, retries } = command;
  const key = JSON.stringify([baseUrl, token, idleMs, retries]);
  if (!clients.has(key)) {
    const settings = { baseURL: `${baseUrl}/v1`, apiKey: token ?? "none" };
    clients.set(key, new OpenAI({ ...settings, timeout: idleMs, maxRetries: retries }));
  }
  const last = await ask(clients.get(key), command).catch((error) => ({
    error: {
      kind: kindOf(error),
      status: error.status ?? null,
      code: typeof error.code === "string" ? error.code : null,
      message: `${error.name}: ${error.message}`,
    },
  }));
  write({ id: command.id, ...last });
}
