package retrieve

import (
	"cmp"

	"memoryd/internal/index"
	"memoryd/internal/rank"
	"memoryd/internal/wire"
)

// Mode is how chunks are ranked.
type Mode string

const (
	Auto         Mode = "auto"
	BM25         Mode = "bm25"
	Semantic     Mode = "semantic"
	Hybrid       Mode = "hybrid"
	HybridRerank Mode = "hybrid-rerank"
	Conversation Mode = "conversation"
)

// The fusions of a hybrid ranking.
const (
	MinMax = "minmax"
	RRF    = "rrf"
)

// The kernels of a semantic ranking.
const (
	Cosine    = "cosine"
	InverseL2 = "inverse-l2"
)

// Request is one search. Zero values mean the contract's defaults, except for TopK.
type Request struct {
	Query      string
	TopK       int
	Mode       Mode
	CandidateK int
	RerankTopN int
	Filter     index.Filter
	Tuning     *Tuning
}

// Tuning holds the settings of a request that a trace repeats.
type Tuning struct {
	Fusion     *string  `json:"fusion,omitzero"`
	Alpha      *float64 `json:"alpha,omitzero"`
	RRFK       *int     `json:"rrfK,omitzero"`
	PoolFactor *int     `json:"poolFactor,omitzero"`
	PoolFloor  *int     `json:"poolFloor,omitzero"`
	Kernel     *string  `json:"kernel,omitzero"`

	Recency  *rank.Recency  `json:"recency,omitzero"`
	Temporal *rank.Temporal `json:"temporal,omitzero"`
}

// plan says how to search: the served mode, with all defaults filled in.
type plan struct {
	mode       Mode
	topK       int
	fusion     string
	alpha      float64
	rrfK       int
	pool       int
	kernel     rank.Kernel
	recency    *rank.Recency
	temporal   *rank.Temporal
	rerankTopN int // 0 if nothing is reranked
}

func newPlan(mode Mode, request Request) plan {
	var tuning Tuning
	if request.Tuning != nil {
		tuning = *request.Tuning
	}
	p := plan{
		mode:     mode,
		topK:     request.TopK,
		fusion:   wire.Or(tuning.Fusion, MinMax),
		alpha:    wire.Or(tuning.Alpha, 0.5),
		rrfK:     wire.Or(tuning.RRFK, 5),
		pool:     request.CandidateK,
		kernel:   rank.Cosine,
		recency:  tuning.Recency,
		temporal: tuning.Temporal,
	}
	if p.pool == 0 {
		p.pool = max(wire.Or(tuning.PoolFactor, 5)*request.TopK, wire.Or(tuning.PoolFloor, 50))
	}
	if wire.Or(tuning.Kernel, Cosine) == InverseL2 {
		p.kernel = rank.InverseL2
	}
	if mode == HybridRerank {
		p.rerankTopN = cmp.Or(request.RerankTopN, 20)
	}
	return p
}

// honoured returns the part of the request's tuning that the search used; nil if it used none.
func (p plan) honoured(request Request) *Tuning {
	if request.Tuning == nil {
		return nil
	}
	used := *request.Tuning
	switch {
	case p.mode == BM25 || p.mode == Conversation:
		return &Tuning{}
	case p.mode == Semantic:
		return &Tuning{Kernel: used.Kernel}
	case p.fusion == RRF:
		used.Alpha = nil
	default:
		used.RRFK = nil
	}
	if request.CandidateK != 0 {
		used.PoolFactor, used.PoolFloor = nil, nil
	}
	return &used
}
