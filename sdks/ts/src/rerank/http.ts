import type OpenAI from "openai";
import { z } from "zod";

import type { Chunk } from "../retrieve/chunk.js";
import { connect } from "../upstream/openai.js";
import type { Upstream } from "../upstream/upstream.js";
import type { Reranker } from "./rerank.js";

const ANSWER = z.object({
  results: z.array(z.object({ index: z.int(), relevance_score: z.number() })),
});

export interface RerankService {
  url: string;
  model: string | undefined;
  apiKey: string | undefined;
  seconds: number;
}

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
    const connection = { name: "reranker", apiKey: apiKey ?? "none", baseURL: url, seconds };
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
    const answer = ANSWER.safeParse(raw);
    if (!answer.success) throw this.#upstream.failure("the response is malformed");
    const { results } = answer.data;
    const byIndex = new Map(results.map(({ index, relevance_score }) => [index, relevance_score]));
    if (results.length !== documents.length) {
      throw this.#upstream.failure(`${results.length} scores for ${documents.length} documents`);
    }
    return documents.map((_, index) => {
      const score = byIndex.get(index);
      if (score === undefined) throw this.#upstream.failure(`no score for document ${index}`);
      return score;
    });
  }
}
