// Package retrieve searches brains: it chooses the mode, ranks chunks, and reports both in a trace.
package retrieve

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"memoryd/internal/brain"
	"memoryd/internal/embed"
	"memoryd/internal/index"
	"memoryd/internal/moment"
	"memoryd/internal/rank"
	"memoryd/internal/rerank"
	"memoryd/internal/text"
	"memoryd/internal/wire"
)

// Retriever searches with the daemon's embedder and reranker; both may be nil.
type Retriever struct {
	Embedder    embed.Embedder
	QueryPrefix string // prepended to queries, not to chunks, before embedding
	Reranker    rerank.Reranker
}

// Result is the result of a search.
type Result struct {
	Chunks []Chunk
	Trace  Trace
}

// Trace reports how a search was done.
type Trace struct {
	RequestedMode  Mode    `json:"requestedMode"`
	EffectiveMode  Mode    `json:"effectiveMode"`
	EmbedderUsed   bool    `json:"embedderUsed"`
	Reranked       bool    `json:"reranked"`
	RerankProvider string  `json:"rerankProvider,omitzero"`
	FellBackToBM25 bool    `json:"fellBackToBm25"`
	CandidateK     int     `json:"candidateK"`
	SearchMs       float64 `json:"searchMs"`
	Tuning         *Tuning `json:"tuning,omitzero"`
}

// Retrieve returns the best chunks, in the mode that can be served.
func (r Retriever) Retrieve(ctx context.Context, b *brain.Brain, request Request) (Result, error) {
	started := time.Now()
	p := newPlan(r.effective(request.Mode), request)
	chunks, err := r.chunks(ctx, b, request, &p)
	if err != nil {
		return Result{}, err
	}
	trace := Trace{
		RequestedMode:  request.Mode,
		EffectiveMode:  p.mode,
		EmbedderUsed:   r.compares(p.mode),
		Reranked:       p.mode == HybridRerank,
		FellBackToBM25: p.mode == BM25 && request.Mode != BM25 && request.Mode != Auto,
		CandidateK:     p.pool,
		SearchMs:       Milliseconds(time.Since(started)),
		Tuning:         p.honoured(request),
	}
	if trace.Reranked {
		trace.RerankProvider = r.Reranker.Provider()
	}
	return Result{Chunks: chunks, Trace: trace}, nil
}

// Milliseconds converts a duration to the unit of responses.
func Milliseconds(d time.Duration) float64 {
	return math.Round(d.Seconds()*1e6) / 1e3
}

// effective returns the mode that is served; conversation only if the brain has turns.
func (r Retriever) effective(mode Mode) Mode {
	switch {
	case mode == Conversation:
		return Conversation
	case mode == BM25 || r.Embedder == nil:
		return BM25
	case mode == Auto && r.Embedder.Model() == embed.FeatureHashModel:
		return BM25
	case mode == Semantic:
		return Semantic
	case mode == HybridRerank && r.Reranker != nil:
		return HybridRerank
	default:
		return Hybrid
	}
}

// compares reports whether a served mode compares vectors. conversation does if auto would, which may
// be served in its place.
func (r Retriever) compares(mode Mode) bool {
	if mode == Conversation {
		mode = r.effective(Auto)
	}
	return mode != BM25
}

// chunks returns the best chunks. It changes the plan's mode if the brain has no turns.
func (r Retriever) chunks(ctx context.Context, b *brain.Brain, request Request, p *plan) ([]Chunk, error) {
	chunks := []Chunk{}
	hasTerms := len(text.QueryTerms(request.Query)) > 0
	var vector embed.Vector
	if hasTerms && r.compares(p.mode) {
		// Embedded before the brain is locked: a slow service must not block writers.
		vectors, err := r.Embedder.Embed(ctx, []string{r.QueryPrefix + request.Query})
		if err != nil {
			return nil, err
		}
		vector = vectors[0]
	}
	err := b.Search(ctx, func(ix *index.Index) error {
		if p.mode == Conversation && !ix.HasTurns() {
			p.mode = r.effective(Auto)
		}
		if !hasTerms {
			return nil
		}
		hits, err := p.ranked(ctx, ix, request, vector)
		if err != nil {
			return err
		}
		stored, err := ix.Chunks(hits)
		for i, c := range stored {
			chunks = append(chunks, newChunk(c, hits[i].Score))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if p.mode == HybridRerank && len(chunks) > 0 {
		if err := r.rerank(ctx, request.Query, chunks, *p); err != nil {
			return nil, err
		}
	}
	return chunks[:min(len(chunks), p.topK)], nil
}

// ranked returns the best hits of the plan's mode, or of hybrid if they are reranked later.
func (p plan) ranked(ctx context.Context, ix *index.Index, request Request, vector embed.Vector) ([]rank.Hit, error) {
	switch p.mode {
	case BM25:
		return ix.Keyword(ctx, request.Query, request.Filter, p.topK)
	case Semantic:
		return ix.Semantic(vector, p.kernel, request.Filter, p.topK)
	case Conversation:
		return ix.Conversation(ctx, request.Query, vector, request.Filter, p.topK)
	}
	keyword, err := ix.Keyword(ctx, request.Query, request.Filter, p.pool)
	if err != nil {
		return nil, err
	}
	semantic, err := ix.Semantic(vector, p.kernel, request.Filter, p.pool)
	if err != nil {
		return nil, err
	}
	var fused []rank.Hit
	if p.fusion == RRF {
		fused = rank.FuseReciprocal(keyword, semantic, p.rrfK)
	} else {
		fused = rank.FuseMinMax(keyword, semantic, p.alpha)
	}
	if p.recency != nil || p.temporal != nil {
		dates, err := datesOf(ix, fused)
		if err != nil {
			return nil, err
		}
		rank.ByDate(fused, dates, p.recency, p.temporal)
	}
	return rank.Best(fused, max(p.topK, p.rerankTopN), ix.Compare), nil
}

// datesOf returns the dates of the documents of hits; nil for one without a date.
func datesOf(ix *index.Index, hits []rank.Hit) ([]*time.Time, error) {
	stored, err := ix.Chunks(hits)
	dates := make([]*time.Time, len(stored))
	for i, chunk := range stored {
		if date, err := moment.Parse(wire.Value[string](chunk.Metadata["date"])); err == nil {
			dates[i] = &date
		}
	}
	return dates, err
}

// rerank sorts the first chunks by the reranker's scores and places the others below them.
func (r Retriever) rerank(ctx context.Context, query string, chunks []Chunk, p plan) error {
	head := chunks[:min(len(chunks), p.rerankTopN)]
	tail := chunks[len(head):]
	scores, err := r.Reranker.Scores(ctx, query, Notes(head))
	if err != nil {
		return err
	}
	for i := range head {
		head[i].Score = rank.Round(scores[i])
	}
	slices.SortFunc(head, func(a, b Chunk) int {
		return cmp.Or(
			cmp.Compare(b.Score, a.Score),
			strings.Compare(a.Path, b.Path),
			cmp.Compare(a.ordinal, b.ordinal),
		)
	})
	below := head[len(head)-1].Score - 2
	for i := range tail {
		tail[i].Score = rank.Round(below + tail[i].Score)
	}
	return nil
}
