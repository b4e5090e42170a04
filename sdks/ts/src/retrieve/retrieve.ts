/** Retrieval: the best chunks for a query, with a trace of how they were found. */

import type { Brain } from "../brain/brain.js";
import { documentFilter, type Filters } from "../index/filter.js";
import type { Search } from "../index/search.js";
import { epochSeconds } from "../moment.js";
import { Problem } from "../problem.js";
import { byDate } from "../rank/dates.js";
import { fuseMinMax, fuseReciprocal } from "../rank/fuse.js";
import { type Hit, roundScore } from "../rank/rank.js";
import type { Reranker } from "../rerank/rerank.js";
import { queryTerms } from "../text/terms.js";
import { type Chunk, chunksOf, compareChunks } from "./chunk.js";
import {
  appliedTuning,
  type Mode,
  type Plan,
  planFor,
  type RetrievalRequest,
  type ServedMode,
  type Tuning,
} from "./plan.js";

export interface Trace {
  requestedMode: Mode;
  effectiveMode: ServedMode;
  embedderUsed: boolean;
  reranked: boolean;
  rerankProvider?: string;
  fellBackToBm25: boolean;
  candidateK: number;
  searchMs: number;
  tuning?: Tuning;
}

export interface RetrievalResult {
  chunks: Chunk[];
  trace: Trace;
}

export class Retriever {
  readonly #reranker: Reranker | undefined;
  readonly #queryPrefix: string;

  /** @param queryPrefix Prepended to a query before it is embedded; some models require one. */
  constructor(reranker: Reranker | undefined, queryPrefix: string) {
    this.#reranker = reranker;
    this.#queryPrefix = queryPrefix;
  }

  /**
   * The best chunks, in the requested mode or the one that it falls back to.
   *
   * @throws Problem `bad_gateway` or `timeout` if embedder or reranker fail, `not_found` if the brain
   *   is deleted meanwhile; or the reason of `signal`.
   */
  async retrieve(
    brain: Brain,
    request: RetrievalRequest & { filters?: Filters | undefined },
    signal: AbortSignal,
  ): Promise<RetrievalResult> {
    const started = performance.now();
    const available = { embedder: brain.embedder, reranker: this.#reranker };
    let plan = planFor(request, available);
    const { query, filters } = request;
    const hasTerms = queryTerms(query).length > 0;
    const vector =
      hasTerms && plan.comparesVectors ? await this.#embed(brain, query, signal) : undefined;
    // Begun after the wait: the brain may have been changed or deleted meanwhile.
    const search = brain.index.search(query, documentFilter(filters));
    if (plan.mode === "conversation" && !search.hasTurns) {
      plan = planFor({ ...request, mode: "auto" }, available);
    }
    const chunks = hasTerms ? await this.#chunks(search, query, vector, plan, signal) : [];
    const reranked = plan.mode === "hybrid-rerank";
    const trace: Trace = {
      requestedMode: request.mode,
      effectiveMode: plan.mode,
      embedderUsed: plan.comparesVectors,
      reranked,
      ...(reranked && this.#reranker && { rerankProvider: this.#reranker.provider }),
      fellBackToBm25: plan.mode === "bm25" && request.mode !== "bm25" && request.mode !== "auto",
      candidateK: plan.pool,
      searchMs: elapsedMs(started),
      ...(request.tuning && { tuning: appliedTuning(request, plan) }),
    };
    return { chunks, trace };
  }

  async #embed(
    { embedder }: Brain,
    query: string,
    signal: AbortSignal,
  ): Promise<Float32Array | undefined> {
    if (embedder === undefined) return undefined;
    const [vector] = await embedder.embed([this.#queryPrefix + query], signal);
    if (vector === undefined) throw new Problem("bad_gateway", "the embedder returned no vector");
    return vector;
  }

  async #chunks(
    search: Search,
    query: string,
    vector: Float32Array | undefined,
    plan: Plan,
    signal: AbortSignal,
  ): Promise<Chunk[]> {
    const { mode, topK, kernel } = plan;
    if (mode === "conversation") {
      return chunksOf(search, await search.conversation(vector, topK, signal));
    }
    if (mode === "bm25" || vector === undefined) {
      return chunksOf(search, await search.keyword(topK, signal));
    }
    if (mode === "semantic") {
      return chunksOf(search, await search.semantic(vector, topK, kernel, signal));
    }
    const fused = await hybrid(search, vector, plan, signal);
    if (mode === "hybrid" || this.#reranker === undefined) {
      return chunksOf(search, fused.slice(0, topK));
    }
    const head = chunksOf(search, fused.slice(0, plan.rerankTopN));
    const rest = fused.slice(plan.rerankTopN);
    const tail = chunksOf(search, rest.slice(0, Math.max(0, topK - head.length)));
    return (await rerankHead(this.#reranker, query, head, tail, signal)).slice(0, topK);
  }
}

async function hybrid(
  search: Search,
  vector: Float32Array,
  plan: Plan,
  signal: AbortSignal,
): Promise<Hit[]> {
  const keyword = await search.keyword(plan.pool, signal);
  const semantic = await search.semantic(vector, plan.pool, plan.kernel, signal);
  const fused =
    plan.fusion === "rrf"
      ? fuseReciprocal(keyword, semantic, plan.rrfK)
      : fuseMinMax(keyword, semantic, plan.alpha);
  const { recency, temporal } = plan;
  const hits = recency || temporal ? byDate(fused, (slot) => dateOf(search, slot), plan) : fused;
  return hits.sort(search.compare);
}

/** The date of a slot's document in seconds from 1970, if `metadata.date` is one. */
function dateOf(search: Search, slot: number): number | undefined {
  const { date } = search.chunk(slot).metadata;
  return typeof date === "string" ? epochSeconds(date) : undefined;
}

/** Sort `head` by the reranker's scores; `tail` follows in its order, with lower scores. */
async function rerankHead(
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

/** Milliseconds since `started`, a `performance.now()` timestamp, rounded to the microsecond. */
export function elapsedMs(started: number): number {
  return Math.round((performance.now() - started) * 1000) / 1000;
}
