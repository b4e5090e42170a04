package api

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"memoryd/internal/index"
	"memoryd/internal/rank"
	"memoryd/internal/retrieve"
	"memoryd/internal/wire"
)

// Retrieval holds the keys that the bodies of search and ask share.
type Retrieval struct {
	TopK         *integer           `json:"topK"`
	Mode         *string            `json:"mode"`
	QuestionDate *string            `json:"questionDate"`
	CandidateK   *integer           `json:"candidateK"`
	RerankTopN   *integer           `json:"rerankTopN"`
	Filters      object[filterBody] `json:"filters"`
	Tuning       object[tuningBody] `json:"tuning"`
}

// object is an object without unknown keys; the body is nil if it is missing or null.
type object[T any] struct{ body *T }

// UnmarshalJSONFrom replaces the object of an equal key, which a plain pointer would merge with this one.
func (o *object[T]) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	o.body = nil
	return json.UnmarshalDecode(decoder, &o.body, json.RejectUnknownMembers(true))
}

func (b Retrieval) request(c *checker, query string, topK int) retrieve.Request {
	c.moment("questionDate", b.QuestionDate) // for the reader, but validated for searches too
	mode := c.oneOf("mode", b.Mode, string(retrieve.Auto), string(retrieve.BM25),
		string(retrieve.Semantic), string(retrieve.Hybrid), string(retrieve.HybridRerank), string(retrieve.Conversation))
	return retrieve.Request{
		Query:      query,
		TopK:       c.within("topK", b.TopK, topK, 1, 1_000),
		Mode:       retrieve.Mode(mode),
		CandidateK: c.within("candidateK", b.CandidateK, 0, 0, 10_000),
		RerankTopN: c.within("rerankTopN", b.RerankTopN, 0, 0, 1_000),
		Filter:     b.Filters.body.filter(c),
		Tuning:     b.Tuning.body.tuning(c),
	}
}

type filterBody struct {
	PathPrefix *string    `json:"pathPrefix"`
	Paths      wire.Texts `json:"paths"`
	Tags       wire.Texts `json:"tags"`
	SessionIDs wire.Texts `json:"sessionIds"`
	Scope      *string    `json:"scope"`
	Project    *string    `json:"project"`
}

var scopes = map[string]string{
	"global":  "memory/global/",
	"project": "memory/project/",
	"raw":     "raw/",
}

func (b *filterBody) filter(c *checker) index.Filter {
	if b == nil {
		return index.Filter{}
	}
	filter := index.Filter{Paths: b.Paths, Tags: b.Tags, Sessions: b.SessionIDs}
	if b.PathPrefix != nil {
		filter.Prefixes = append(filter.Prefixes, *b.PathPrefix)
	}
	if b.Scope != nil {
		scope := c.oneOf("filters.scope", b.Scope, "global", "project", "raw")
		filter.Prefixes = append(filter.Prefixes, scopes[scope])
	}
	if b.Project != nil {
		filter.Prefixes = append(filter.Prefixes, "memory/project/"+*b.Project+"/")
	}
	return filter
}

type tuningBody struct {
	Fusion     *string              `json:"fusion"`
	Alpha      *float64             `json:"alpha"`
	RRFK       *integer             `json:"rrfK"`
	PoolFactor *integer             `json:"poolFactor"`
	PoolFloor  *integer             `json:"poolFloor"`
	Kernel     *string              `json:"kernel"`
	Recency    object[recencyBody]  `json:"recency"`
	Temporal   object[temporalBody] `json:"temporal"`
}

type recencyBody struct {
	Now       *string  `json:"now"`
	Relevance *float64 `json:"relevance"`
	Weight    *float64 `json:"weight"`
	DecayDays *float64 `json:"decayDays"`
}

func (b *recencyBody) recency(c *checker) *rank.Recency {
	if b == nil {
		return nil
	}
	const key = "tuning.recency."
	c.required(key+"now", b.Now)
	recency := rank.Recency{
		Now:       c.moment(key+"now", b.Now),
		Relevance: c.number(key+"relevance", b.Relevance, 0, 1),
		Weight:    c.number(key+"weight", b.Weight, 0, 1),
		DecayDays: c.number(key+"decayDays", b.DecayDays, 1, 36_500),
	}
	if recency.Relevance+recency.Weight > 1 {
		c.refuse("tuning.recency: relevance and weight must not exceed 1 together")
	}
	return &recency
}

type temporalBody struct {
	At            *string  `json:"at"`
	ToleranceDays *float64 `json:"toleranceDays"`
	Boost         *float64 `json:"boost"`
}

func (b *temporalBody) temporal(c *checker) *rank.Temporal {
	if b == nil {
		return nil
	}
	const key = "tuning.temporal."
	c.required(key+"at", b.At)
	return &rank.Temporal{
		At:            c.moment(key+"at", b.At),
		ToleranceDays: c.number(key+"toleranceDays", b.ToleranceDays, 1, 36_500),
		Boost:         c.number(key+"boost", b.Boost, 0, 1),
	}
}

func (b *tuningBody) tuning(c *checker) *retrieve.Tuning {
	if b == nil {
		return nil
	}
	if b.Alpha != nil && (*b.Alpha < 0 || *b.Alpha > 1) {
		c.refuse("tuning.alpha: must be in 0…1")
	}
	c.oneOf("tuning.fusion", b.Fusion, retrieve.MinMax, retrieve.RRF)
	c.oneOf("tuning.kernel", b.Kernel, retrieve.Cosine, retrieve.InverseL2)
	return &retrieve.Tuning{
		Fusion:     b.Fusion,
		Alpha:      b.Alpha,
		RRFK:       c.positive("tuning.rrfK", b.RRFK, 10_000),
		PoolFactor: c.positive("tuning.poolFactor", b.PoolFactor, 1_000),
		PoolFloor:  c.positive("tuning.poolFloor", b.PoolFloor, 10_000),
		Kernel:     b.Kernel,
		Recency:    b.Recency.body.recency(c),
		Temporal:   b.Temporal.body.temporal(c),
	}
}

func (a *API) search(w http.ResponseWriter, r *http.Request) error {
	started := time.Now()
	b, err := a.Store.Get(r.Context(), r.PathValue("brain"))
	if err != nil {
		return err
	}
	var body struct {
		Query *string `json:"query"`
		Retrieval
	}
	if err := decode(r, &body); err != nil {
		return err
	}
	var c checker
	request := body.request(&c, c.filled("query", body.Query), 10)
	if c.err != nil {
		return c.err
	}
	result, err := a.Retriever.Retrieve(r.Context(), b, request)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, struct {
		Chunks []retrieve.Chunk `json:"chunks"`
		TookMs float64          `json:"tookMs"`
		Trace  retrieve.Trace   `json:"trace"`
	}{result.Chunks, retrieve.Milliseconds(time.Since(started)), result.Trace})
}
