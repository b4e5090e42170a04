import type { ChatModel } from "../llm/llm.js";
import { Problem } from "../problem.js";
import { scoresIn } from "../prompt/answer.js";
import { rerankPrompt } from "../prompt/prompt.js";
import type { Chunk } from "../retrieve/chunk.js";
import type { Reranker } from "./rerank.js";

/** Reranks with a language model. */
export class LLMReranker implements Reranker {
  readonly provider = "llm";
  readonly #chat: ChatModel;
  readonly #model: string;

  constructor(chat: ChatModel, model: string) {
    this.#chat = chat;
    this.#model = model;
  }

  async rerank(query: string, chunks: readonly Chunk[], signal: AbortSignal): Promise<number[]> {
    const reply = await this.#chat.complete(this.#model, rerankPrompt(query, chunks), signal);
    const scores = scoresIn(reply, chunks.length);
    if (scores === undefined) {
      throw new Problem(
        "bad_gateway",
        `the reranker did not return a score for each of ${chunks.length} notes`,
      );
    }
    return scores;
  }
}
