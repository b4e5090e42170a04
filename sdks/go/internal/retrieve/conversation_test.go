package retrieve

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"memoryd/internal/brain"
	"memoryd/internal/embed"
	"memoryd/internal/index"
	"memoryd/internal/wire"
)

// say stores a turn of the session.
func say(t *testing.T, b *brain.Brain, session string, index int, text string) {
	t.Helper()
	doc := brain.NewDocument{Path: fmt.Sprintf("raw/%s/%d.md", session, index), Content: []byte(text)}
	doc.Sidecar.Metadata = wire.Object{
		"session_id": jsontext.Value(fmt.Sprintf("%q", session)), "index": jsontext.Value(fmt.Sprint(index)),
	}
	if _, err := b.Ingest(t.Context(), []brain.NewDocument{doc}); err != nil {
		t.Fatal(err)
	}
}

// holiday is a brain of two sessions and a note, which is no turn.
func holiday(t *testing.T, embedder embed.Embedder) *brain.Brain {
	t.Helper()
	b := newTestBrain(t, embedder, map[string]string{"note.md": "The roof needs paint."})
	for n, text := range []string{"Where did you go?", "To the lake, with my sister.", "Lovely!", "Yes.", "No.", "So.", "Well."} {
		say(t, b, "s1", n, text)
	}
	say(t, b, "s2", 0, "My bicycle has a flat tyre.")
	return b
}

func TestConversationFindsNeighbours(t *testing.T) {
	b := holiday(t, nil)
	found := find(t, Retriever{}, b, Request{Query: "lake", Mode: Conversation})
	want := []string{"raw/s1/0.md", "raw/s1/1.md", "raw/s1/2.md", "raw/s1/3.md", "raw/s1/4.md", "raw/s1/5.md"}
	if got := slices.Sorted(slices.Values(paths(found))); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if found.Chunks[0].Path != "raw/s1/1.md" || found.Chunks[5].Score >= 0 {
		t.Errorf("%q, the last scores %v", paths(found), found.Chunks[5].Score)
	}
	few := find(t, Retriever{}, b, Request{Query: "lake", Mode: Conversation, TopK: 2, CandidateK: 1})
	if !reflect.DeepEqual(few.Chunks, found.Chunks[:2]) || few.Trace.CandidateK != 1 {
		t.Errorf("the best two are %q of %q", paths(few), paths(found))
	}
}

func TestConversationIsFilteredLast(t *testing.T) {
	for _, r := range []Retriever{{}, {Embedder: otherModel{}}} {
		b := holiday(t, r.Embedder)
		all := find(t, r, b, Request{Query: "lake", Mode: Conversation})
		for _, test := range []struct {
			filter index.Filter
			allows func(path string) bool
		}{
			{index.Filter{Sessions: []string{"s1"}}, func(path string) bool { return strings.HasPrefix(path, "raw/s1/") }},
			{index.Filter{Sessions: []string{"s2"}}, func(path string) bool { return strings.HasPrefix(path, "raw/s2/") }},
			{index.Filter{Paths: []string{"raw/s1/4.md"}}, func(path string) bool { return path == "raw/s1/4.md" }},
			{index.Filter{Prefixes: []string{"note"}}, func(path string) bool { return path == "note.md" }},
			{index.Filter{Tags: []string{}}, func(string) bool { return false }},
		} {
			want := []Chunk{}
			for _, c := range all.Chunks {
				if test.allows(c.Path) {
					want = append(want, c)
				}
			}
			got := find(t, r, b, Request{Query: "lake", Mode: Conversation, Filter: test.filter})
			if !reflect.DeepEqual(got.Chunks, want) {
				t.Errorf("%+v: %v, want %v", test.filter, got.Chunks, want)
			}
		}
	}
}

func TestConversationComparesVectorsIfAutoDoes(t *testing.T) {
	factor, alpha := 9, 0.1
	tuning := &Tuning{PoolFactor: &factor, Alpha: &alpha}
	for _, test := range []struct {
		name     string
		embedder embed.Embedder
		compares bool
		found    int
	}{
		{"none", nil, false, 6}, {"feature hash", embed.FeatureHash{}, false, 6}, {"another", otherModel{}, true, 9},
	} {
		b := holiday(t, test.embedder)
		r := Retriever{Embedder: test.embedder, Reranker: &judge{}}
		found := find(t, r, b, Request{Query: "lake", Mode: Conversation, TopK: 10, Tuning: tuning})
		want := Trace{
			RequestedMode: Conversation, EffectiveMode: Conversation, EmbedderUsed: test.compares,
			CandidateK: 90, SearchMs: found.Trace.SearchMs, Tuning: &Tuning{},
		}
		if len(found.Chunks) != test.found || !reflect.DeepEqual(found.Trace, want) {
			t.Errorf("%s: %q, %+v", test.name, paths(found), found.Trace)
		}
	}
}

func TestConversationWithoutTurnsIsAuto(t *testing.T) {
	for _, r := range []Retriever{{}, {Embedder: embed.FeatureHash{}}, {Embedder: otherModel{}}} {
		b := newTestBrain(t, r.Embedder, map[string]string{"a.md": "A lake.", "b.md": "A roof by the lake."})
		for _, query := range []string{"lake roof", "?"} {
			alpha := 0.3
			request := Request{Query: query, Mode: Auto, Tuning: &Tuning{Alpha: &alpha}}
			want := find(t, r, b, request)
			request.Mode = Conversation
			got := find(t, r, b, request)
			want.Trace.RequestedMode = Conversation
			want.Trace.FellBackToBM25 = want.Trace.EffectiveMode == BM25
			want.Trace.SearchMs = got.Trace.SearchMs
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%q: %+v, want %+v", query, got, want)
			}
		}
	}
}

func TestModeFollowsTheTurnsOfTheBrain(t *testing.T) {
	b := newTestBrain(t, nil, map[string]string{"note.md": "kite"})
	served := func() Mode {
		served := find(t, Retriever{}, b, Request{Query: "kite", Mode: Conversation}).Trace.EffectiveMode
		if none := find(t, Retriever{}, b, Request{Query: "?", Mode: Conversation}); none.Trace.EffectiveMode != served {
			t.Errorf("without a term, %s is served, not %s", none.Trace.EffectiveMode, served)
		}
		return served
	}
	if got := served(); got != BM25 {
		t.Errorf("without turns, %s is served", got)
	}
	say(t, b, "s", 0, "kite")
	if got := served(); got != Conversation {
		t.Errorf("with a turn, %s is served", got)
	}
	if _, err := b.Ingest(t.Context(), []brain.NewDocument{{Path: "raw/s/0.md", Content: []byte("kite")}}); err != nil {
		t.Fatal(err)
	}
	if got := served(); got != BM25 {
		t.Errorf("after the turn was replaced by a note, %s is served", got)
	}
}

func TestConversationsAreSearchedWhileTheyGoOn(t *testing.T) {
	b := holiday(t, otherModel{})
	r := Retriever{Embedder: otherModel{}}
	var searching sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		searching.Add(1)
		go func() {
			defer searching.Done()
			last := 0
			for {
				found, err := r.Retrieve(t.Context(), b, Request{Query: "lake", Mode: Conversation, TopK: 1000})
				if err != nil || len(found.Chunks) < last {
					t.Errorf("%d chunks after %d, %v", len(found.Chunks), last, err)
				}
				last = len(found.Chunks)
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
	}
	for n := range 50 {
		say(t, b, "s3", n, "We are at the lake.")
	}
	close(stop)
	searching.Wait()
	found := find(t, r, b, Request{Query: "lake", Mode: Conversation, TopK: 1000})
	if len(found.Chunks) != 59 {
		t.Errorf("%d chunks", len(found.Chunks))
	}
}
