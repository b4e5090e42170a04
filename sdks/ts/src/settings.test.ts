import assert from "node:assert/strict";
import { test } from "node:test";

import { type Environment, SettingsError, settingsFrom } from "./settings.js";

const rejected: [env: Environment, message: RegExp][] = [
  [{ JB_LLM_PROVIDER: "gpt" }, /JB_LLM_PROVIDER=gpt/],
  [{ JB_EMBED_PROVIDER: "anthropic" }, /JB_EMBED_PROVIDER=anthropic/],
  [{ JB_RERANK_PROVIDER: "fake" }, /JB_RERANK_PROVIDER=fake/],
  [{ JB_LLM_PROVIDER: "openai", JB_LLM_MODEL: "m" }, /OPENAI_API_KEY/],
  [{ JB_LLM_PROVIDER: "openai", OPENAI_API_KEY: "k" }, /JB_LLM_MODEL/],
  [{ JB_LLM_PROVIDER: "anthropic", JB_LLM_MODEL: "m" }, /ANTHROPIC_API_KEY/],
  [{ JB_LLM_PROVIDER: "ollama" }, /JB_LLM_MODEL/],
  [{ JB_EMBED_PROVIDER: "openai", JB_EMBED_MODEL: "m", OPENAI_API_KEY: "" }, /OPENAI_API_KEY/],
  [{ JB_EMBED_PROVIDER: "ollama" }, /JB_EMBED_MODEL/],
  [{ JB_RERANK_PROVIDER: "http" }, /JB_RERANK_URL/],
  [{ JB_RERANK_PROVIDER: "http", JB_RERANK_URL: "nowhere" }, /JB_RERANK_URL/],
  [{ JB_RERANK_PROVIDER: "llm" }, /JB_RERANK_PROVIDER=llm/],
  [{ JB_RERANK_PROVIDER: "llm", JB_LLM_PROVIDER: "fake" }, /JB_RERANK_PROVIDER=llm/],
  [
    { JB_LLM_PROVIDER: "openai", JB_LLM_MODEL: "m", OPENAI_API_KEY: "k", OPENAI_BASE_URL: "x" },
    /OPENAI_BASE_URL/,
  ],
  ...["0", "-1", "soon", "1e99", "1e3", "+5", " 5", "0x10", "1_0", "1000000.5"].map(
    (seconds): [Environment, RegExp] => [
      { JB_LLM_PROVIDER: "ollama", JB_LLM_MODEL: "m", JB_UPSTREAM_TIMEOUT: seconds },
      /JB_UPSTREAM_TIMEOUT/,
    ],
  ),
];

for (const [env, message] of rejected) {
  test(`rejects ${JSON.stringify(env)}`, () => {
    assert.throws(
      () => settingsFrom(env),
      (error) => error instanceof SettingsError && message.test(error.message),
    );
  });
}

test("an API key alone selects no provider", () => {
  const settings = settingsFrom({ OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "k", OLLAMA_HOST: "h" });
  assert.equal(settings.embedder, undefined);
  assert.equal(settings.reader, undefined);
  assert.equal(settings.reranker, undefined);
});

test("embedders with different vectors have different names", () => {
  const model = { JB_EMBED_MODEL: "m", OPENAI_API_KEY: "k" };
  const names = [
    { JB_EMBED_PROVIDER: "openai" },
    { JB_EMBED_PROVIDER: "openai", OPENAI_BASE_URL: "http://other/v1" },
    { JB_EMBED_PROVIDER: "openai", JB_EMBED_MODEL: "n" },
    { JB_EMBED_PROVIDER: "ollama" },
    { JB_EMBED_PROVIDER: "fake" },
  ].map((variables) => settingsFrom({ ...model, ...variables }).embedder?.name);
  assert.match(names[0] ?? "", /^openai\/m@[0-9a-f]{12}$/);
  assert.equal(names.at(-1), "fh256-1");
  assert.equal(new Set(names).size, names.length);
});

test("rejects a bad timeout even if no provider uses it", () => {
  assert.throws(() => settingsFrom({ JB_UPSTREAM_TIMEOUT: "soon" }), /JB_UPSTREAM_TIMEOUT=soon/);
});

test("rejects an address with a password without repeating it", () => {
  const url = "http://me:pa55word@127.0.0.1:1/v1";
  for (const variables of [
    { JB_RERANK_PROVIDER: "http", JB_RERANK_URL: url },
    { JB_EMBED_PROVIDER: "openai", JB_EMBED_MODEL: "m", OPENAI_API_KEY: "k", OPENAI_BASE_URL: url },
    { JB_EMBED_PROVIDER: "ollama", JB_EMBED_MODEL: "m", OLLAMA_HOST: url },
  ]) {
    assert.throws(
      () => settingsFrom(variables),
      (error: unknown) => error instanceof Error && !error.message.includes("pa55word"),
    );
  }
});

for (const token of ["", " ", "a b", "a\n", "\x00", "\x7f", "gehe\u00efm"]) {
  test(`rejects a token that is not visible ASCII without repeating it: ${JSON.stringify(token)}`, () => {
    assert.throws(
      () => settingsFrom({ JB_AUTH_TOKEN: token }),
      (error: unknown) =>
        error instanceof SettingsError && (token.length < 3 || !error.message.includes(token)),
    );
  });
}

test("keeps a token unchanged", () => {
  assert.equal(settingsFrom({ JB_AUTH_TOKEN: "!~=/+" }).authToken, "!~=/+");
  assert.equal(settingsFrom({}).authToken, undefined);
});
