package retrieve

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"memoryd/internal/brain"
	"memoryd/internal/embed"
	"memoryd/internal/problem"
	"memoryd/internal/prompt"
)

func newTestBrain(t *testing.T, embedder embed.Embedder, texts map[string]string) *brain.Brain {
	t.Helper()
	store, err := brain.NewStore(brain.Home(t.TempDir()), embedder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	b, err := store.Create(t.Context(), "b", nil)
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range texts { // in no order
		doc := brain.NewDocument{Path: path, Content: []byte(text)}
		if _, err := b.Ingest(t.Context(), []brain.NewDocument{doc}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func find(t *testing.T, r Retriever, b *brain.Brain, request Request) Result {
	t.Helper()
	if request.TopK == 0 {
		request.TopK = 100
	}
	found, err := r.Retrieve(t.Context(), b, request)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func paths(result Result) []string {
	paths := []string{}
	for _, c := range result.Chunks {
		paths = append(paths, c.Path)
	}
	return paths
}

// otherModel is any model but the feature hash, whose vectors it has.
type otherModel struct{ embed.FeatureHash }

func (otherModel) Model() string { return "other" }

var modes = []Mode{BM25, Semantic, Hybrid}

func TestServedMode(t *testing.T) {
	type served struct {
		mode     Mode
		fellBack bool
	}
	reranker := &judge{scores: map[string]float64{"zebra": 1}}
	for _, test := range []struct {
		name      string
		retriever Retriever
		want      map[Mode]served
	}{
		{"neither", Retriever{}, map[Mode]served{
			Auto: {BM25, false}, BM25: {BM25, false}, Semantic: {BM25, true},
			Hybrid: {BM25, true}, HybridRerank: {BM25, true},
		}},
		{"feature hash", Retriever{Embedder: embed.FeatureHash{}}, map[Mode]served{
			Auto: {BM25, false}, Semantic: {Semantic, false}, Hybrid: {Hybrid, false}, HybridRerank: {Hybrid, false},
		}},
		{"embedder", Retriever{Embedder: otherModel{}}, map[Mode]served{
			Auto: {Hybrid, false}, BM25: {BM25, false}, Semantic: {Semantic, false},
			Hybrid: {Hybrid, false}, HybridRerank: {Hybrid, false},
		}},
		{"both", Retriever{Embedder: otherModel{}, Reranker: reranker}, map[Mode]served{
			Auto: {Hybrid, false}, HybridRerank: {HybridRerank, false},
		}},
	} {
		b := newTestBrain(t, test.retriever.Embedder, map[string]string{"a.md": "zebra"})
		for mode, want := range test.want {
			trace := find(t, test.retriever, b, Request{Query: "zebra", Mode: mode}).Trace
			if got := (served{trace.EffectiveMode, trace.FellBackToBM25}); got != want || trace.RequestedMode != mode {
				t.Errorf("%s, %s: %+v", test.name, mode, trace)
			}
			if trace.EmbedderUsed != (want.mode != BM25) || trace.Reranked != (want.mode == HybridRerank) ||
				(trace.RerankProvider != "") != trace.Reranked {
				t.Errorf("%s, %s: %+v", test.name, mode, trace)
			}
		}
	}
}

func TestTraceRepeatsOnlyUsedTuning(t *testing.T) {
	fusion, alpha, ten, nine, kernel := RRF, 0.1, 10, 9, InverseL2
	tuning := &Tuning{Fusion: &fusion, Alpha: &alpha, RRFK: &ten, PoolFactor: &nine, Kernel: &kernel}
	b := newTestBrain(t, embed.FeatureHash{}, nil)
	r := Retriever{Embedder: embed.FeatureHash{}}
	for _, test := range []struct {
		request Request
		want    *Tuning
		pool    int
	}{
		{Request{Mode: Hybrid, TopK: 10}, nil, 50},
		{Request{Mode: Hybrid, TopK: 11}, nil, 55},
		{
			Request{Mode: Hybrid, TopK: 10, Tuning: tuning},
			&Tuning{Fusion: &fusion, RRFK: &ten, PoolFactor: &nine, Kernel: &kernel}, 90,
		},
		{
			Request{Mode: Hybrid, TopK: 10, Tuning: tuning, CandidateK: 7},
			&Tuning{Fusion: &fusion, RRFK: &ten, Kernel: &kernel}, 7,
		},
		{Request{Mode: Semantic, TopK: 10, Tuning: tuning}, &Tuning{Kernel: &kernel}, 90},
		{Request{Mode: Hybrid, TopK: 10, Tuning: &Tuning{Alpha: &alpha, RRFK: &ten}}, &Tuning{Alpha: &alpha}, 50},
		{Request{Mode: BM25, TopK: 10, Tuning: tuning}, &Tuning{}, 90},
	} {
		test.request.Query = "zebra"
		trace := find(t, r, b, test.request).Trace
		if !reflect.DeepEqual(trace.Tuning, test.want) || trace.CandidateK != test.pool {
			t.Errorf("%+v: %+v", test.request, trace)
		}
	}
}

func TestEveryModeRanks(t *testing.T) {
	texts := map[string]string{}
	for n := range 40 {
		texts[fmt.Sprintf("%02d.md", n)] = fmt.Sprintf("note %d zebra%s", n, strings.Repeat(" giraffe", n%5))
	}
	texts["cafe.md"] = "Caf\u00e9 Zo\u00eb"
	b := newTestBrain(t, embed.FeatureHash{}, texts)
	again := newTestBrain(t, embed.FeatureHash{}, texts)
	r := Retriever{Embedder: embed.FeatureHash{}}
	for _, mode := range modes {
		request := Request{Query: "giraffe note zebra", Mode: mode, CandidateK: 100}
		all := find(t, r, b, request)
		if got := find(t, r, again, request); !slices.Equal(paths(got), paths(all)) {
			t.Errorf("%s: the order of ingest changes the ranking", mode)
		}
		request.TopK = 7
		if got := find(t, r, b, request); !slices.Equal(paths(got), paths(all)[:7]) {
			t.Errorf("%s: %q is no prefix of %q", mode, paths(got), paths(all))
		}
		if got := find(t, r, b, Request{Query: "? !", Mode: mode}); got.Chunks == nil || len(got.Chunks) != 0 {
			t.Errorf("%s: no term finds %q", mode, paths(got))
		}
		composed := find(t, r, b, Request{Query: "caf\u00e9 zo\u00eb", Mode: mode})
		decomposed := find(t, r, b, Request{Query: "cafe\u0301 zoe\u0308", Mode: mode})
		if !reflect.DeepEqual(composed.Chunks, decomposed.Chunks) || composed.Chunks[0].Path != "cafe.md" {
			t.Errorf("%s: %q and %q", mode, paths(composed), paths(decomposed))
		}
	}
}

// judge scores notes by their text; unknown notes score 0.
type judge struct {
	scores map[string]float64
	asked  int
	err    error
}

func (*judge) Provider() string { return "http" }

func (j *judge) Scores(_ context.Context, _ string, notes []prompt.Note) ([]float64, error) {
	j.asked = len(notes)
	scores := make([]float64, len(notes))
	for i, note := range notes {
		scores[i] = j.scores[note.Text]
	}
	return scores, j.err
}

func TestReranking(t *testing.T) {
	b := newTestBrain(t, embed.FeatureHash{}, map[string]string{
		"a.md": "zebra zebra zebra", "b.md": "zebra zebra two", "c.md": "zebra two three", "d.md": "two three four",
	})
	j := &judge{scores: map[string]float64{"zebra zebra two": 0.25, "zebra two three": 0.25}}
	r := Retriever{Embedder: embed.FeatureHash{}, Reranker: j}
	request := Request{Query: "zebra", Mode: Hybrid}
	hybrid := find(t, r, b, request)
	request.Mode, request.RerankTopN = HybridRerank, 3
	reranked := find(t, r, b, request)
	if got := paths(reranked); !slices.Equal(got, []string{"b.md", "c.md", "a.md", "d.md"}) || j.asked != 3 {
		t.Errorf("%q of %q, of %d", got, paths(hybrid), j.asked)
	}
	if got, want := reranked.Chunks[3].Score, hybrid.Chunks[3].Score-2; got != want {
		t.Errorf("the next chunk scores %v, want %v", got, want)
	}
	request.TopK = 1
	if got := find(t, r, b, request); !slices.Equal(paths(got), []string{"b.md"}) || j.asked != 3 {
		t.Errorf("%q, of %d", paths(got), j.asked)
	}
	j.asked = 0
	request.Filter.Paths = []string{}
	if got := find(t, r, b, request); len(got.Chunks) != 0 || j.asked != 0 {
		t.Errorf("%q, of %d", paths(got), j.asked)
	}
	request.Filter.Paths = nil
	j.err = problem.New(problem.Timeout, "silent")
	if _, err := r.Retrieve(t.Context(), b, request); !errors.Is(err, j.err) {
		t.Errorf("Retrieve = %v", err)
	}
}

// listener is an embedder that records its texts.
type listener struct {
	embed.FeatureHash
	heard []string
}

func (l *listener) Embed(ctx context.Context, texts []string) ([]embed.Vector, error) {
	l.heard = append(l.heard, texts...)
	return l.FeatureHash.Embed(ctx, texts)
}

func TestPrefixAppliesToQueriesNotChunks(t *testing.T) {
	l := &listener{}
	b := newTestBrain(t, l, map[string]string{"a.md": "zebra"})
	find(t, Retriever{Embedder: l, QueryPrefix: "query: "}, b, Request{Query: "lion", Mode: Semantic})
	if !slices.Equal(l.heard, []string{"zebra", "query: lion"}) {
		t.Errorf("embedded %q", l.heard)
	}
}
