/** The providers that a configuration selects. */

import type { Config, Service } from "../config.js";
import type { Embedder } from "../embed/embed.js";
import { FeatureHash } from "../embed/featureHash.js";
import { OpenAIEmbedder } from "../embed/openai.js";
import { AnthropicChat } from "../llm/anthropic.js";
import type { ChatModel } from "../llm/llm.js";
import { OpenAIChat } from "../llm/openai.js";
import { FakeReader } from "../reader/fake.js";
import { LLMReader } from "../reader/llm.js";
import type { Reader } from "../reader/reader.js";
import { HttpReranker } from "../rerank/http.js";
import { LLMReranker } from "../rerank/llm.js";
import type { Reranker } from "../rerank/rerank.js";
import type { Connection } from "../upstream/upstream.js";

export function createProviders(config: Config) {
  return {
    embedder: createEmbedder(config),
    reader: createReader(config),
    reranker: createReranker(config),
  };
}

function createEmbedder({ embed, upstreamSeconds }: Config): Embedder | undefined {
  if (embed.provider === "none") return undefined;
  if (embed.provider === "fake") return new FeatureHash();
  return new OpenAIEmbedder(connectionTo(embed, upstreamSeconds), embed.model);
}

function createReader({ llm, upstreamSeconds }: Config): Reader | undefined {
  if (llm.provider === "none") return undefined;
  if (llm.provider === "fake") return new FakeReader();
  return new LLMReader(createChat(llm, upstreamSeconds), llm.model);
}

function createReranker({ rerank, upstreamSeconds: seconds }: Config): Reranker | undefined {
  if (rerank.provider === "none") return undefined;
  if (rerank.provider === "http") return new HttpReranker({ ...rerank, seconds });
  return new LLMReranker(createChat(rerank.llm, seconds), rerank.llm.model);
}

function createChat(service: Service, seconds: number): ChatModel {
  const connection = connectionTo(service, seconds);
  return service.provider === "anthropic"
    ? new AnthropicChat(connection)
    : new OpenAIChat(connection);
}

function connectionTo({ provider: name, apiKey, baseURL }: Service, seconds: number): Connection {
  return { name, apiKey, baseURL, seconds };
}
