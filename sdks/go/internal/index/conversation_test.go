package index

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"memoryd/internal/embed"
	"memoryd/internal/rank"
	"memoryd/internal/text"
	"memoryd/internal/vectortest"
	"memoryd/internal/wire"
)

type place struct {
	Path    string
	Ordinal int
}

type conversationCase struct {
	Name, Query string
	Chunks      []struct {
		place
		Text     string
		Metadata jsonObject
	}
	Terms []string
	BM25  []struct {
		Term   string
		Scores []float64
	}
	Cosines  []float64
	Expected []struct {
		place
		Score float64
	}
}

// jsonObject keeps values as they are written, for a decoder that does not know wire.Object.
type jsonObject struct{ wire.Object }

func (o *jsonObject) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, &o.Object) }

func TestConversationVectors(t *testing.T) {
	var vectors struct{ Cases []conversationCase }
	vectortest.Load(t, "conversation", &vectors)
	for _, test := range vectors.Cases {
		t.Run(test.Name, func(t *testing.T) {
			ix := newTestIndex(t, "")
			chunks := map[place]int{}
			documents := map[string]*Document{}
			for i, c := range test.Chunks {
				chunks[c.place] = i
				if documents[c.Path] == nil {
					documents[c.Path] = &Document{Path: c.Path, Metadata: c.Metadata.Object}
				}
				d := documents[c.Path]
				d.Chunks = append(d.Chunks, c.Text)
			}
			for _, d := range documents { // in no order
				apply(t, ix, *d)
			}
			if ix.HasTurns() != (test.Expected != nil) {
				t.Fatalf("has turns: %v", ix.HasTurns())
			}
			terms := text.QueryTerms(test.Query)
			if got := keywords(terms); !slices.Equal(got, test.Terms) {
				t.Errorf("terms %q, want %q", got, test.Terms)
			}
			if test.Expected == nil {
				return
			}
			numberOf := func(slot int) int {
				s := ix.slots[slot]
				return chunks[place{s.document.path, s.ordinal}]
			}
			c := ix.conversations()
			var cosines []float64
			if test.Cosines != nil {
				for _, at := range c.places {
					cosines = append(cosines, test.Cosines[numberOf(int(at.Slot))])
				}
			}
			hits, err := c.ranked(t.Context(), terms, func(term string) iter.Seq2[int, float64] {
				return func(yield func(int, float64) bool) {
					for _, given := range test.BM25 {
						for slot := range ix.slots {
							score := given.Scores[numberOf(slot)]
							if given.Term == term && score > 0 && !yield(slot, score) {
								return
							}
						}
					}
				}
			}, cosines)
			if err != nil {
				t.Fatal(err)
			}
			hits = rank.Best(hits, 1000, ix.Compare)
			if len(hits) != len(test.Expected) {
				t.Fatalf("%d hits, want %d", len(hits), len(test.Expected))
			}
			for i, want := range test.Expected {
				s := ix.slots[hits[i].Slot]
				if got := (place{s.document.path, s.ordinal}); got != want.place || math.Abs(hits[i].Score-want.Score) > 1e-6 {
					t.Errorf("%d: %v scores %v, want %v with %v", i, got, hits[i].Score, want.place, want.Score)
				}
			}
		})
	}
}

// said returns a turn of the session; index and speaker are JSON, or empty.
func said(path, session, index, speaker string, chunks ...string) Document {
	d := doc(path, chunks...)
	d.Metadata["session_id"] = jsontext.Value(fmt.Sprintf("%q", session))
	for key, value := range map[string]string{"index": index, "speaker": speaker} {
		if value != "" {
			d.Metadata[key] = jsontext.Value(value)
		}
	}
	return d
}

func TestOrderOfASession(t *testing.T) {
	ix := newTestIndex(t, "")
	documents := []Document{
		said("9.md", "s", "-1e300", "", "x"),
		said("8.md", "s", "-0", "", "x", "y"),
		said("80.md", "s", "0.0", "", "x"),
		said("7.md", "s", "2.5", "", "x"),
		said("6.md", "s", "10", "", "x"),
		said("10.md", "s", `"1"`, "", "x"),
		said("11.md", "s", "true", "", "x"),
		said("12.md", "s", "null", "", "x"),
		said("13.md", "s", `{"a": 1}`, "", "x"),
		said("14.md", "s", "", "", "x"),
		said("15.md", "s", "1e400", "", "x"),
		said("05.md", "t", "0", "", "x"),
		doc("a.md", "x"),
		said("b.md", "", "0", "", "x", "y"),
	}
	var want []string
	for _, d := range documents {
		for ordinal := range d.Chunks {
			want = append(want, fmt.Sprint(d.Path, "#", ordinal))
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(documents), func(i, j int) {
		documents[i], documents[j] = documents[j], documents[i]
	})
	apply(t, ix, documents...)
	var got []string
	sessions := map[uint32]int{}
	for at, p := range ix.conversations().places {
		s := ix.slots[p.Slot]
		got = append(got, fmt.Sprint(s.document.path, "#", s.ordinal))
		sessions[p.Session]++
		if ix.conversations().at[p.Slot] != int32(at) {
			t.Errorf("slot %d is not at %d", p.Slot, at)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if sizes := slices.Sorted(maps.Values(sessions)); !slices.Equal(sizes, []int{1, 1, 1, 1, 12}) {
		t.Errorf("sessions of %v", sizes)
	}
}

func TestSpeakersAreNamedByAllTermsOfTheirNames(t *testing.T) {
	ix := newTestIndex(t, "")
	for n, speaker := range []string{`"Ben Berg"`, `"ben"`, `"Who"`, `"Al"`, `"…"`, `""`, `7`, `null`, `["ben"]`, ""} {
		apply(t, ix, said(fmt.Sprint(n), fmt.Sprint(n), "", speaker, "kite"))
	}
	c := ix.conversations()
	named := c.named(text.QueryTerms("Who is BEN, the al?"))
	var got []string
	for _, p := range c.places {
		if named[p.Speaker] {
			got = append(got, ix.slots[p.Slot].document.path)
		}
	}
	if !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("named: %q", got)
	}
}

// conversation returns the paths and scores of a search without a filter.
func conversation(t *testing.T, ix *Index, query string, vector embed.Vector) (paths []string, scores []float64) {
	t.Helper()
	hits, err := ix.Conversation(t.Context(), query, vector, Filter{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, hit := range hits {
		s := ix.slots[hit.Slot]
		paths = append(paths, fmt.Sprint(s.document.path, "#", s.ordinal))
		scores = append(scores, hit.Score)
	}
	return paths, scores
}

func TestChangesLeaveTheConversationOfANewIndex(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"walking", "walks", "zebra", "the", "runner", "why?", "Ana"}
	ix := newTestIndex(t, "")
	documents := map[string]Document{}
	vectors, _ := embed.FeatureHash{}.Embed(t.Context(), []string{"walk the zebra"})
	for step := range 2000 {
		path := fmt.Sprint(random.IntN(40))
		if _, there := documents[path]; there && random.IntN(3) == 0 {
			delete(documents, path)
			if err := ix.Apply(nil, path); err != nil {
				t.Fatal(err)
			}
		} else {
			var content []string
			for range random.IntN(9) + 1 {
				content = append(content, words[random.IntN(len(words))])
			}
			session, index := []string{"", "s", "t"}[random.IntN(3)], fmt.Sprint(random.IntN(9))
			speaker := []string{`"Ana"`, `"Zebra"`, ""}[random.IntN(3)]
			documents[path] = said(path, session, index, speaker, strings.Join(content, " "))
			apply(t, ix, documents[path])
		}
		if step%20 != 0 {
			continue
		}
		fresh := newTestIndex(t, "")
		for _, d := range documents { // in no order
			apply(t, fresh, d)
		}
		if ix.HasTurns() != fresh.HasTurns() {
			t.Errorf("step %d: has turns: %v", step, ix.HasTurns())
		}
		for _, vector := range []embed.Vector{nil, vectors[0]} {
			paths, scores := conversation(t, ix, "walk the zebra walk", vector)
			wantPaths, wantScores := conversation(t, fresh, "walk the zebra walk", vector)
			if !slices.Equal(paths, wantPaths) || !slices.Equal(scores, wantScores) {
				t.Fatalf("step %d: %v, want %v", step, scores, wantScores)
			}
			if vector != nil && len(paths) != len(documents) {
				t.Errorf("step %d: %d of %d chunks are ranked", step, len(paths), len(documents))
			}
		}
	}
}

func TestReadersShareTheOrderOfAnIndex(t *testing.T) {
	ix := newTestIndex(t, "")
	for round := range 20 {
		apply(t, ix, said(fmt.Sprint(round), "s", fmt.Sprint(round), "", "kite"))
		var reading sync.WaitGroup
		var orders [8]*conversations
		for reader := range orders {
			reading.Add(1)
			go func() {
				defer reading.Done()
				hits, err := ix.Conversation(t.Context(), "kite", nil, Filter{}, 100)
				if err != nil || len(hits) != round+1 {
					t.Errorf("round %d: %d hits, %v", round, len(hits), err)
				}
				orders[reader] = ix.conversations()
			}()
		}
		reading.Wait()
		if made := slices.Compact(orders[:]); len(made) != 1 || len(made[0].places) != round+1 {
			t.Errorf("round %d: %d orders are made", round, len(made))
		}
	}
}

func TestTurnsAreFoundAgainByAReopenedIndex(t *testing.T) {
	file := t.TempDir() + "/b.log"
	ix := newTestIndex(t, file)
	apply(t, ix, said("a.md", "s", "1", `"Ben"`, "kite"), said("b.md", "s", "0", "", "What flies?"))
	paths, scores := conversation(t, ix, "kite of Ben", nil)
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	ix = newTestIndex(t, file)
	gotPaths, gotScores := conversation(t, ix, "kite of Ben", nil)
	if !ix.HasTurns() || len(paths) != 2 || !slices.Equal(gotPaths, paths) || !slices.Equal(gotScores, scores) {
		t.Errorf("%q %v, want %q %v", gotPaths, gotScores, paths, scores)
	}
}
