import type OpenAI from "openai";
import { z } from "zod";

import type { HttpRerank } from "../config.js";
import type { Chunk } from "../retrieve/chunk.js";
import { connect } from "../upstream/openai.js";
import type { Upstream } from "../upstream/upstream.js";
import type { Reranker } from "./rerank.js";

const ANSWER = z.object({
  results: z.array(z.object({ index: z.int(), relevance_score: z.number() })),
});

type RerankService = HttpRerank & { seconds: number };

/** A service with the rerank API that several vendors share. */
export class HttpReranker implements Reranker {
  readonly provider = "http";
  readonly #service: RerankService;
  readonly #client: OpenAI;
  readonly #upstream: Upstream;

  constructor(service: RerankService) {
    const { url, apiKey, seconds } = service;
    this.#service = service;
    // OpenAI's client can post to any address, with its own retries.
    const connection = { name: "reranker", apiKey, baseURL: url, seconds };
    [this.#client, this.#upstream] = connect(connection);
  }

  async rerank(query: string, chunks: readonly Chunk[], signal: AbortSignal): Promise<number[]> {
    const { url, model, apiKey } = this.#service;
    const documents = chunks.map(({ text }) => text);
    const body = { model, query, documents, top_n: documents.length };
    const headers = apiKey === undefined ? { Authorization: null } : {};
    const raw = await this.#upstream.call(signal, (callSignal) =>
      this.#client.post(url, { body, headers, signal: callSignal }),
    );
    const { results } = this.#upstream.parse(ANSWER, raw, "the response is malformed");
    const scores = results.map(({ index, relevance_score }) => [index, relevance_score] as const);
    return this.#upstream.inOrder(scores, documents.length, "score", "document");
  }
}
