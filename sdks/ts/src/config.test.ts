import assert from "node:assert/strict";
import { test } from "node:test";

import { type Environment, ConfigError, configFromEnv } from "./config.js";

const rejected: [env: Environment, message: RegExp][] = [
  [{ JB_LLM_PROVIDER: "gpt" }, /JB_LLM_PROVIDER=gpt/],
  [{ JB_EMBED_PROVIDER: "anthropic" }, /JB_EMBED_PROVIDER=anthropic/],
  [{ JB_RERANK_PROVIDER: "fake" }, /JB_RERANK_PROVIDER=fake/],
  [{ JB_LLM_PROVIDER: "openai", JB_LLM_MODEL: "m" }, /OPENAI_API_KEY/],
  [{ JB_LLM_PROVIDER: "openai", OPENAI_API_KEY: "k" }, /JB_LLM_MODEL/],
  [{ JB_LLM_PROVIDER: "anthropic", JB_LLM_MODEL: "m" }, /ANTHROPIC_API_KEY/],
  [{ JB_LLM_PROVIDER: "ollama" }, /JB_LLM_MODEL/],
  [{ JB_EMBED_PROVIDER: "openai", JB_EMBED_MODEL: "m", OPENAI_API_KEY: "" }, /OPENAI_API_KEY/],
  [
    { JB_EMBED_PROVIDER: "openai", JB_EMBED_MODEL: "m", OPENAI_API_KEY: " " },
    /OPENAI_API_KEY is blank/,
  ],
  [
    { JB_RERANK_PROVIDER: "http", JB_RERANK_URL: "http://h", JB_RERANK_API_KEY: " " },
    /JB_RERANK_API_KEY is blank/,
  ],
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
      () => configFromEnv(env),
      (error) => error instanceof ConfigError && message.test(error.message),
    );
  });
}

test("an API key alone selects no provider", () => {
  const config = configFromEnv({ OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "k", OLLAMA_HOST: "h" });
  for (const { provider } of [config.embed, config.llm, config.rerank]) {
    assert.equal(provider, "none");
  }
});

test("rejects a bad timeout even if no provider uses it", () => {
  assert.throws(() => configFromEnv({ JB_UPSTREAM_TIMEOUT: "soon" }), /JB_UPSTREAM_TIMEOUT=soon/);
});

test("rejects an address with a password without repeating it", () => {
  const url = "http://me:pa55word@127.0.0.1:1/v1";
  for (const variables of [
    { JB_RERANK_PROVIDER: "http", JB_RERANK_URL: url },
    { JB_EMBED_PROVIDER: "openai", JB_EMBED_MODEL: "m", OPENAI_API_KEY: "k", OPENAI_BASE_URL: url },
    { JB_EMBED_PROVIDER: "ollama", JB_EMBED_MODEL: "m", OLLAMA_HOST: url },
  ]) {
    assert.throws(
      () => configFromEnv(variables),
      (error: unknown) => error instanceof Error && !error.message.includes("pa55word"),
    );
  }
});

for (const token of ["", " ", "a b", "a\n", "\x00", "\x7f", "gehe\u00efm"]) {
  test(`rejects a token that is not visible ASCII without repeating it: ${JSON.stringify(token)}`, () => {
    assert.throws(
      () => configFromEnv({ JB_AUTH_TOKEN: token }),
      (error: unknown) =>
        error instanceof ConfigError && (token.length < 3 || !error.message.includes(token)),
    );
  });
}

test("keeps a token unchanged", () => {
  assert.equal(configFromEnv({ JB_AUTH_TOKEN: "!~=/+" }).authToken, "!~=/+");
  assert.equal(configFromEnv({}).authToken, undefined);
});
