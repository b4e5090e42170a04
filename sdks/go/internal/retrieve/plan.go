package retrieve

import (
	"memoryd/internal/index"
	"memoryd/internal/rank"
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
	rerankTopN int
}

func newPlan(mode Mode, request Request) plan {
	var tuning Tuning
	if request.Tuning != nil {
		tuning = *request.Tuning
	}
	p := plan{
		mode:       mode,
		topK:       request.TopK,
		fusion:     or(tuning.Fusion, MinMax),
		alpha:      or(tuning.Alpha, 0.5),
		rrfK:       or(tuning.RRFK, 5),
		pool:       request.CandidateK,
		kernel:     rank.Cosine,
		recency:    tuning.Recency,
		temporal:   tuning.Temporal,
		rerankTopN: request.RerankTopN,
	}
	if p.pool == 0 {
		p.pool = max(or(tuning.PoolFactor, 5)*request.TopK, or(tuning.PoolFloor, 50))
	}
	if or(tuning.Kernel, Cosine) == InverseL2 {
		p.kernel = rank.InverseL2
	}
	if p.rerankTopN == 0 {
		p.rerankTopN = 20
	}
	return p
}

// wanted returns how many hits the hybrid ranking must produce.
func (p plan) wanted() int {
	if p.mode == HybridRerank {
		return max(p.topK, p.rerankTopN)
	}
	return p.topK
}

// honoured returns the part of the request's tuning that the search used; nil if it used none.
func (p plan) honoured(request Request) *Tuning {
	if request.Tuning == nil {
		return nil
	}
	var used Tuning
	if p.mode == BM25 || p.mode == Conversation {
		return &used
	}
	used.Kernel = request.Tuning.Kernel
	if p.mode == Semantic {
		return &used
	}
	used.Fusion = request.Tuning.Fusion
	used.Recency = request.Tuning.Recency
	used.Temporal = request.Tuning.Temporal
	if p.fusion == RRF {
		used.RRFK = request.Tuning.RRFK
	} else {
		used.Alpha = request.Tuning.Alpha
	}
	if request.CandidateK == 0 {
		used.PoolFactor = request.Tuning.PoolFactor
		used.PoolFloor = request.Tuning.PoolFloor
	}
	return &used
}

func or[T any](value *T, fallback T) T {
	if value == nil {
		return fallback
	}
	return *value
}
