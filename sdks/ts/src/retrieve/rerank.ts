import { type Chunk, compareChunks } from "./chunk.js";
import { roundScore } from "../rank/fuse.js";
import type { Reranker } from "../rerank/rerank.js";

/** Sort `head` by the reranker's scores; `tail` follows in its order, with lower scores. */
export async function rerankHead(
  reranker: Reranker,
  query: string,
  head: Chunk[],
  tail: Chunk[],
  signal: AbortSignal,
): Promise<Chunk[]> {
  if (head.length === 0) return [];
  const scores = (await reranker.rerank(query, head, signal)).map(roundScore);
  const lowest = Math.min(...scores);
  return [
    ...head.map((chunk, i) => ({ ...chunk, score: scores[i] ?? lowest })).sort(compareChunks),
    ...tail.map((chunk) => ({ ...chunk, score: roundScore(lowest - 2 + chunk.score) })),
  ];
}
