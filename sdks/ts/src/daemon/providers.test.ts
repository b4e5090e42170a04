import assert from "node:assert/strict";
import { test } from "node:test";

import { configFromEnv } from "../config.js";
import { createProviders } from "./providers.js";

test("an API key alone creates no provider", () => {
  const env = { OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "k", OLLAMA_HOST: "h" };
  assert.deepEqual(createProviders(configFromEnv(env)), {
    embedder: undefined,
    reader: undefined,
    reranker: undefined,
  });
});

test("embedders with different vectors have different names", () => {
  const model = { JB_EMBED_MODEL: "m", OPENAI_API_KEY: "k" };
  const names = [
    { JB_EMBED_PROVIDER: "openai" },
    { JB_EMBED_PROVIDER: "openai", OPENAI_BASE_URL: "http://other/v1" },
    { JB_EMBED_PROVIDER: "openai", JB_EMBED_MODEL: "n" },
    { JB_EMBED_PROVIDER: "ollama" },
    { JB_EMBED_PROVIDER: "fake" },
  ].map((variables) => createProviders(configFromEnv({ ...model, ...variables })).embedder?.name);
  assert.match(names[0] ?? "", /^openai\/m@[0-9a-f]{12}$/);
  assert.equal(names.at(-1), "fh256-1");
  assert.equal(new Set(names).size, names.length);
});
