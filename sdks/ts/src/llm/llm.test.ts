/** Readers that call services: requests sent, answers parsed, failures reported. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { UpstreamFixture } from "../testing/fixture.js";
import { Timers } from "../testing/timers.js";
import { until } from "../testing/until.js";
import { delta, events, KEY, silence, SILENCE_MS, status } from "../testing/upstream.js";

const fixture = new UpstreamFixture();

async function startReader(provider: string): Promise<void> {
  await fixture.start({ JB_LLM_PROVIDER: provider, JB_LLM_MODEL: "m" });
  await fixture.ingest("a.md", "The zebra sleeps.");
}

const done = "[DONE]";
const usage = { choices: [], usage: { prompt_tokens: 7, completion_tokens: 3 } };
const whole = [delta("Sleeps "), delta("[1]."), delta("", "stop"), usage, done];

const message = (type: string, more: object = {}) => ({ type, ...more });
const textDelta = (text: string) =>
  message("content_block_delta", { index: 0, delta: { type: "text_delta", text } });
const anthropicWhole = [
  message("message_start", { message: { usage: { input_tokens: 7 } } }),
  message("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  message("ping"),
  textDelta("Sleeps "),
  textDelta("[1]."),
  message("content_block_stop", { index: 0 }),
  message("message_delta", { delta: {}, usage: { output_tokens: 3 } }),
  message("message_stop"),
];

for (const [provider, pieces, path] of [
  ["openai", whole, "/v1/chat/completions"],
  ["ollama", whole, "/v1/chat/completions"],
  ["anthropic", anthropicWhole, "/v1/messages"],
] as const) {
  test(`${provider} answers`, async () => {
    await startReader(provider);
    fixture.upstream.script(events([...pieces]));
    const question = { question: "zebra?", questionDate: "2024-06-01", model: "other" };
    const answer = await fixture.daemon.ask(question);
    assert.deepEqual(
      answer.map(([name]) => name),
      ["retrieve", "answer_delta", "answer_delta", "citation", "done"],
    );
    assert.deepEqual(answer.at(-1)?.[1], {
      ok: true,
      answer: "Sleeps [1].",
      usage: { inputTokens: 7, outputTokens: 3 },
    });
    const [received] = fixture.upstream.received;
    assert.equal(received?.path, path);
    assert.equal(received.body.model, "other");
    assert.equal(received.body.stream, true);
    assert.match(JSON.stringify(received.body), /Date of the question: 2024-06-01/);
    for (const sampling of ["temperature", "top_p", "seed"])
      assert.ok(!(sampling in received.body));
    if (provider === "anthropic") assert.equal(received.body.max_tokens, 1024);
    else assert.deepEqual(received.body.stream_options, { include_usage: true });
    const authorization = received.headers.authorization ?? received.headers["x-api-key"];
    assert.match(String(authorization), provider === "ollama" ? /ollama$/ : new RegExp(`${KEY}$`));
  });
}

const failures: [name: string, ...Parameters<typeof events>][] = [
  ["no text", [delta("", "stop"), done]],
  ["only white space", [delta(" \n"), delta("", "stop"), done]],
  ["a stream that ends early", [delta("Sleeps.")]],
  ["an empty stream", []],
  ["an error in the stream", [delta("Sl"), { error: { message: `no ${KEY}` } }]],
  ["invalid JSON", [delta("Sl"), "{"]],
  ["an unexpected shape", [delta("Sl"), { choices: 7 }]],
];

for (const [name, ...stream] of failures) {
  test(`${name} is a bad gateway`, async () => {
    await startReader("openai");
    fixture.upstream.script(events(...stream));
    const answer = await fixture.daemon.ask({ question: "zebra?" });
    assert.equal(answer.at(-2)?.[0], "error");
    const [, error] = answer.at(-2) ?? [];
    assert.equal(error?.code, "bad_gateway");
    assert.match(String(error.message), /^(openai: |the model).+/);
    assert.deepEqual(answer.at(-1), ["done", { ok: false }]);
    assert.ok(!JSON.stringify(answer).includes(KEY));
    assert.ok(!answer.some(([event]) => event === "citation"));
  });
}

for (const pieces of [
  [textDelta("Sl"), message("error", { error: { type: "overloaded_error", message: "busy" } })],
  [textDelta("Sleeps")],
  [message("message_stop")],
  [message("content_block_delta", { delta: { type: "text_delta", text: 7 } })],
]) {
  test(`anthropic: a bad gateway for ${JSON.stringify(pieces)}`, async () => {
    await startReader("anthropic");
    fixture.upstream.script(events(pieces));
    const answer = await fixture.daemon.ask({ question: "zebra?" });
    assert.equal(answer.at(-2)?.[1].code, "bad_gateway");
    assert.deepEqual(answer.at(-1), ["done", { ok: false }]);
  });
}

test("a rejection is reported with its status, without the key, and is not retried", async () => {
  await startReader("openai");
  fixture.upstream.script(status(401, JSON.stringify({ error: { message: `wrong key ${KEY}` } })));
  const answer = await fixture.daemon.ask({ question: "zebra?" });
  assert.equal(answer.at(-2)?.[1].message, "openai: 401 wrong key [key]");
  assert.equal(fixture.upstream.received.length, 1);
});

test("a placeholder is not redacted as if it was a key", async () => {
  await startReader("ollama");
  fixture.upstream.script(status(404, JSON.stringify({ error: { message: "try ollama pull m" } })));
  const answer = await fixture.daemon.ask({ question: "zebra?" });
  assert.equal(answer.at(-2)?.[1].message, "ollama: 404 try ollama pull m");
});

test("a failed call is retried at most twice", async () => {
  await startReader("openai");
  const again = status(503, "{}", { "retry-after-ms": "1" });
  fixture.upstream.script(again, status(429, "{}", { "retry-after-ms": "1" }), events(whole));
  assert.equal((await fixture.daemon.ask({ question: "zebra?" })).at(-1)?.[1].ok, true);
  fixture.upstream.script(again);
  assert.equal((await fixture.daemon.ask({ question: "zebra?" })).at(-2)?.[1].code, "bad_gateway");
  assert.equal(fixture.upstream.received.length, 3);
});

const waits = (timers: Timers, length: number) => timers.lengths.filter((ms) => ms === length);

for (const [name, respond, isSilent, cancelled] of [
  ["before the first piece", silence, () => fixture.upstream.received.length > 0, 1],
  [
    "in mid-answer",
    events([delta("Sleeps")], { open: true }),
    // It has waited for the response and for a piece of it, and waits for another.
    (timers: Timers) => waits(timers, SILENCE_MS).length === 3,
    1,
  ],
  [
    "while the client library waits to retry",
    status(503, "{}", { "Retry-After": "50" }),
    (timers: Timers) => waits(timers, 50_000).length > 0,
    0,
  ],
] as const) {
  test(`silence ${name} is a timeout and cancels the request`, async (t) => {
    await startReader("openai");
    fixture.upstream.script(respond);
    const timers = new Timers(t);
    const asking = fixture.daemon.ask({ question: "zebra?" });
    await until(() => isSilent(timers));
    timers.expire(SILENCE_MS);
    const answer = await asking;
    assert.equal(answer.at(-2)?.[1].code, "timeout");
    assert.deepEqual(answer.at(-1), ["done", { ok: false }]);
    await until(() => fixture.upstream.cancelled >= cancelled);
    assert.equal(fixture.upstream.cancelled, cancelled);
    assert.equal(fixture.upstream.received.length, 1);
  });
}

test("a client that disconnects cancels the upstream request", async () => {
  await startReader("openai");
  fixture.upstream.script(events([delta("Sleeps")], { open: true }));
  const gone = new AbortController();
  const init = { signal: gone.signal };
  const response = await fixture.daemon.fetch(
    "POST",
    "/v1/brains/b/ask",
    { question: "zebra?" },
    init,
  );
  await response.body?.getReader().read();
  gone.abort();
  await until(() => fixture.upstream.cancelled > 0);
  assert.equal(fixture.upstream.cancelled, 1);
});

test("a character that a model splits in two is sent whole", async () => {
  await startReader("openai");
  const halves = [delta("a\ud83d"), delta("\ude00b"), delta("\ud83d"), delta("", "stop"), done];
  fixture.upstream.script(events(halves));
  const answer = await fixture.daemon.ask({ question: "zebra?" });
  const texts = answer.flatMap(([name, data]) => (name === "answer_delta" ? [data.text] : []));
  assert.deepEqual(texts, ["a", "😀b", "\ufffd"]);
  assert.equal(answer.at(-1)?.[1].answer, "a😀b\ufffd");
});
