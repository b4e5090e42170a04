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
import { type Chunk, chunksOf } from "./chunk.js";
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
    const embedder = hasTerms && plan.comparesVectors ? brain.embedder : undefined;
    const [vector] = embedder ? await embedder.embed([this.#queryPrefix + query], signal) : [];
    // Words alone would look like a worse ranking.
    if (embedder && !vector) throw new Problem("bad_gateway", "the embedder returned no vector");
    // Begun after the wait: the brain may have been changed or deleted meanwhile.
    const search = brain.index.search(query, documentFilter(filters));
    if (plan.mode === "conversation" && !search.hasTurns) {
      plan = planFor({ ...request, mode: "auto" }, available);
    }
    const hits = hasTerms ? await this.#hits(search, query, vector, plan, signal) : [];
    const chunks = chunksOf(search, hits);
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

  async #hits(
    search: Search,
    query: string,
    vector: Float32Array | undefined,
    plan: Plan,
    signal: AbortSignal,
  ): Promise<Hit[]> {
    const { mode, topK, kernel, rerankTopN } = plan;
    if (mode === "conversation") return search.conversation(vector, topK, signal);
    if (mode === "bm25" || vector === undefined) return search.keyword(topK, signal);
    if (mode === "semantic") return search.semantic(vector, topK, kernel, signal);
    const fused = await hybrid(search, vector, plan, signal);
    if (mode === "hybrid" || this.#reranker === undefined) return fused.slice(0, topK);
    const head = fused.slice(0, rerankTopN);
    if (head.length === 0) return [];
    const chunks = chunksOf(search, head);
    const scores = (await this.#reranker.rerank(query, chunks, signal)).map(roundScore);
    const lowest = Math.min(...scores);
    const ranked = head.map(({ slot }, i) => ({ slot, score: scores[i] ?? lowest }));
    // The rest follow in their order, with lower scores.
    const rest = fused
      .slice(rerankTopN, topK)
      .map(({ slot, score }) => ({ slot, score: roundScore(lowest - 2 + score) }));
    return [...ranked.sort(search.compare), ...rest].slice(0, topK);
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

/** Milliseconds since `started`, a `performance.now()` timestamp, rounded to the microsecond. */
export function elapsedMs(started: number): number {
  return Math.round((performance.now() - started) * 1000) / 1000;
}
