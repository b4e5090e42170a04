// Drives eventsource-parser for `memconform client`, behind fetch as its README shows. What the
// library yields is passed on as it is: only that shows what the library does. sdks/DRIVER.md
// describes the lines.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { EventSourceParserStream } from "eventsource-parser/stream";

const { dependencies } = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8"));
// A deadline and an end are what a signal of fetch has; fetch repeats nothing.
const CLAIMS = ["ask", "token", "deadline", "cancel"];
const NAMES = ["retrieve", "answer_delta", "citation", "error", "done"];

const write = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const failure = (kind, rest = {}) => ({ error: { kind, ...rest } });

/** Ask a question; resolves to the last line of the call, without its id. */
async function ask({ id, baseUrl, brain, body, token, deadlineMs, cancelAfter }) {
  const headers = { "content-type": "application/json", accept: "text/event-stream" };
  if (token !== null) headers.authorization = `Bearer ${token}`;
  const url = new URL(baseUrl);
  url.pathname = `${url.pathname.replace(/\/$/, "")}/v1/brains/${brain}/ask`;
  const response = await fetch(url, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(deadlineMs),
    redirect: "manual", // fetch would send a GET behind 301 and 302
  });
  if (!response.ok) {
    const code = (await response.json().catch(() => null))?.code;
    const known = typeof code === "string" ? { code } : {};
    return failure("http", { status: response.status, ...known });
  }
  const media = (response.headers.get("content-type") ?? "").split(";")[0].trim().toLowerCase();
  if (media !== "text/event-stream" || response.body === null) {
    await response.body?.cancel();
    return failure("protocol", { message: `not a stream: ${media}` });
  }
  const events = response.body
    .pipeThrough(new TextDecoderStream("utf-8", { fatal: true }))
    .pipeThrough(new EventSourceParserStream());
  let count = 0;
  for await (const { event, data } of events) {
    if (!NAMES.includes(event)) continue;
    const value = JSON.parse(data);
    if (value === null || typeof value !== "object" || Array.isArray(value)) {
      return failure("protocol", { message: "data is not an object" });
    }
    if (event === "error" || (event === "done" && value.ok !== true)) {
      return failure("daemon", { code: value.code ?? null });
    }
    // The text that the library gives, without its line ends: JSON.parse has rounded its numbers.
    process.stdout.write(`{"id":${id},"event":"${event}","data":${data.replaceAll("\n", " ")}}\n`);
    count += 1;
    if (event === "done") return { ok: null };
    if (count === cancelAfter) return { cancelled: true };
  }
  return failure("cut", { message: "the stream ended before done" });
}

/** What fetch and JSON throw, in the words of the contract. */
function described(error) {
  const message = `${error.name}: ${error.message}: ${error.cause?.message ?? ""}`;
  if (error.name === "TimeoutError") return failure("timeout", { message });
  if (error instanceof SyntaxError || error.code === "ERR_ENCODING_INVALID_ENCODED_DATA") {
    return failure("protocol", { message });
  }
  // fetch calls a body that breaks off "terminated", and a request without a response "fetch failed".
  if (error.message === "terminated") return failure("cut", { message });
  return failure("connection", { message });
}

const version = dependencies["eventsource-parser"];
write({ driver: `eventsource-parser ${version}`, protocol: 1, claims: CLAIMS });
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  write({ id: command.id, ...(await ask(command).catch(described)) });
}
