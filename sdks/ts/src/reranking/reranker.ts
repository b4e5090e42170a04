import type { Chunk } from "../ranking/chunk.js";

export interface Reranker {
  /** As the trace names it. */
  readonly provider: string;

  /**
   * One finite score a chunk, the higher the better.
   *
   * @throws Problem `bad_gateway` or `timeout` where the service fails.
   */
  rerank(query: string, chunks: readonly Chunk[], signal: AbortSignal): Promise<number[]>;
}
