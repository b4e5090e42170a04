/** Planning a search: the effective mode, and the contract's defaults. */

import type { Embedder } from "../embed/embed.js";
import { FEATURE_HASH } from "../embed/featureHash.js";
import type { Recency, Temporal } from "../rank/dates.js";
import type { Kernel } from "../rank/rank.js";
import type { Reranker } from "../rerank/rerank.js";

export type Mode = "auto" | "bm25" | "semantic" | "hybrid" | "hybrid-rerank" | "conversation";
export type ServedMode = Exclude<Mode, "auto">;

export interface Tuning {
  fusion?: "minmax" | "rrf" | undefined;
  alpha?: number | undefined;
  rrfK?: number | undefined;
  poolFactor?: number | undefined;
  poolFloor?: number | undefined;
  kernel?: Kernel | undefined;
  recency?: Recency | undefined;
  temporal?: Temporal | undefined;
}

export interface RetrievalRequest {
  query: string;
  topK: number;
  mode: Mode;
  /** Size of the candidate pool; 0 leaves it to `tuning`. */
  candidateK: number;
  /** How many chunks are reranked; 0 leaves it to the daemon. */
  rerankTopN: number;
  tuning?: Tuning | undefined;
}

export interface Plan {
  mode: ServedMode;
  comparesVectors: boolean;
  topK: number;
  /** Chunks that each leg of a hybrid search contributes. */
  pool: number;
  kernel: Kernel;
  fusion: "minmax" | "rrf";
  alpha: number;
  rrfK: number;
  recency: Recency | undefined;
  temporal: Temporal | undefined;
  rerankTopN: number;
}

/** The models that a search may use. */
interface Available {
  embedder: Embedder | undefined;
  reranker: Reranker | undefined;
}

const RERANK_TOP_N = 20;

/**
 * Plan a search with the available models: a mode that needs a missing one falls back. A brain without
 * turns serves conversation as auto, which compares vectors if conversation does.
 */
export function planFor(request: RetrievalRequest, available: Available): Plan {
  const { fusion = "minmax", alpha = 0.5, rrfK = 5 } = request.tuning ?? {};
  const { poolFactor = 5, poolFloor = 50, kernel = "cosine" } = request.tuning ?? {};
  const mode = effectiveMode(request.mode, available);
  const compared = mode === "conversation" ? effectiveMode("auto", available) : mode;
  return {
    mode,
    comparesVectors: compared !== "bm25",
    topK: request.topK,
    pool: request.candidateK || Math.max(poolFactor * request.topK, poolFloor),
    kernel,
    fusion,
    alpha,
    rrfK,
    recency: request.tuning?.recency,
    temporal: request.tuning?.temporal,
    rerankTopN: request.rerankTopN || RERANK_TOP_N,
  };
}

function effectiveMode(mode: Mode, { embedder, reranker }: Available): ServedMode {
  if (mode === "conversation") return mode;
  if (mode === "bm25" || embedder === undefined) return "bm25";
  if (mode === "auto" && embedder.model === FEATURE_HASH) return "bm25";
  if (mode === "semantic") return "semantic";
  return mode === "hybrid-rerank" && reranker !== undefined ? "hybrid-rerank" : "hybrid";
}

/** The requested values that the search applied. */
export function appliedTuning(request: RetrievalRequest, plan: Plan): Tuning {
  const { tuning = {} } = request;
  if (plan.mode === "bm25" || plan.mode === "conversation") return {};
  const { fusion, alpha, rrfK, poolFactor, poolFloor, kernel, recency, temporal } = tuning;
  if (plan.mode === "semantic") return { kernel };
  return {
    kernel,
    recency,
    temporal,
    fusion,
    ...(plan.fusion === "rrf" ? { rrfK } : { alpha }),
    ...(request.candidateK === 0 && { poolFactor, poolFloor }),
  };
}
