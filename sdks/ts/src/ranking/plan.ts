/** How a search goes: the mode that is served, and the contract's defaults filled in. */

export type Mode = "auto" | "bm25" | "semantic" | "hybrid" | "hybrid-rerank";
export type ServedMode = Exclude<Mode, "auto">;

export interface Tuning {
  fusion?: "minmax" | "rrf" | undefined;
  alpha?: number | undefined;
  rrfK?: number | undefined;
  poolFactor?: number | undefined;
  poolFloor?: number | undefined;
}

export interface Retrieval {
  query: string;
  topK: number;
  mode: Mode;
  /** 0 leaves the pool to tuning. */
  candidateK: number;
  /** 0 leaves it to the daemon. */
  rerankTopN: number;
  tuning?: Tuning | undefined;
}

export interface Plan {
  mode: ServedMode;
  topK: number;
  /** Chunks that each leg of a hybrid search gives. */
  pool: number;
  fusion: "minmax" | "rrf";
  alpha: number;
  rrfK: number;
  rerankTopN: number;
}

const RERANK_TOP_N = 20;

export function planFor(request: Retrieval, has: { embedder: boolean; reranker: boolean }): Plan {
  const { fusion = "minmax", alpha = 0.5, rrfK = 5 } = request.tuning ?? {};
  const { poolFactor = 5, poolFloor = 50 } = request.tuning ?? {};
  return {
    mode: served(request.mode, has),
    topK: request.topK,
    pool: request.candidateK || Math.max(poolFactor * request.topK, poolFloor),
    fusion,
    alpha,
    rrfK,
    rerankTopN: request.rerankTopN || RERANK_TOP_N,
  };
}

function served(mode: Mode, has: { embedder: boolean; reranker: boolean }): ServedMode {
  if (mode === "bm25" || !has.embedder) return "bm25";
  if (mode === "semantic") return "semantic";
  return mode === "hybrid-rerank" && has.reranker ? "hybrid-rerank" : "hybrid";
}

/** The given values by which the search went; recency and temporal are not offered. */
export function honoured(request: Retrieval, plan: Plan): Tuning {
  const { tuning = {} } = request;
  if (plan.mode === "bm25" || plan.mode === "semantic") return {};
  const { fusion, alpha, rrfK, poolFactor, poolFloor } = tuning;
  return {
    fusion,
    ...(plan.fusion === "rrf" ? { rrfK } : { alpha }),
    ...(request.candidateK === 0 && { poolFactor, poolFloor }),
  };
}
