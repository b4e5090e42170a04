import { type Chunk, compareChunks } from "../ranking/chunk.js";
import { rounded } from "../ranking/fusion.js";
import type { Reranker } from "./reranker.js";

/** `head` by the reranker's scores; `tail` behind it, as it was. */
export async function reordered(
  reranker: Reranker,
  query: string,
  head: Chunk[],
  tail: Chunk[],
  signal: AbortSignal,
): Promise<Chunk[]> {
  if (head.length === 0) return [];
  const scores = (await reranker.rerank(query, head, signal)).map(rounded);
  const lowest = Math.min(...scores);
  return [
    ...head.map((chunk, i) => ({ ...chunk, score: scores[i] ?? lowest })).sort(compareChunks),
    ...tail.map((chunk) => ({ ...chunk, score: rounded(lowest - 2 + chunk.score) })),
  ];
}
