import type { Chunk } from "../retrieve/chunk.js";

export interface Reranker {
  /** Its name in the trace. */
  readonly provider: string;

  /**
   * One finite score per chunk; higher is better.
   *
   * @throws Problem `bad_gateway` or `timeout` if the service fails; or the reason of `signal`.
   */
  rerank(query: string, chunks: readonly Chunk[], signal: AbortSignal): Promise<number[]>;
}
