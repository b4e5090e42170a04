package index

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"memoryd/internal/embed"
	"memoryd/internal/problem"
	"memoryd/internal/rank"
	"memoryd/internal/text"
	"memoryd/internal/wire"
)

func newTestIndex(t *testing.T, file string) *Index {
	t.Helper()
	ix, err := Open(file, "fh256-1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ix.Close() })
	return ix
}

func doc(path string, chunks ...string) Document {
	vectors, _ := embed.FeatureHash{}.Embed(context.Background(), chunks)
	return Document{Path: path, Stamp: "s", Chunks: chunks, Vectors: vectors, Metadata: wire.Object{}}
}

func apply(t *testing.T, ix *Index, documents ...Document) {
	t.Helper()
	if err := ix.Apply(documents); err != nil {
		t.Fatal(err)
	}
}

// found returns the paths of a keyword search.
func found(t *testing.T, ix *Index, query string, filter Filter) []string {
	t.Helper()
	keyword, err := ix.Keyword(t.Context(), query, filter, 100)
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{}
	chunks, err := ix.Chunks(keyword)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chunks {
		paths = append(paths, c.Path)
	}
	return paths
}

func best(t *testing.T, ix *Index, query string) string {
	t.Helper()
	vectors, _ := embed.FeatureHash{}.Embed(t.Context(), []string{query})
	hits, err := ix.Semantic(vectors[0], rank.Cosine, Filter{}, 1)
	if err != nil || len(hits) == 0 {
		t.Fatalf("%v, %v", hits, err)
	}
	return ix.slots[hits[0].Slot].document.path
}

func TestFreeSlotsAreCompactedWithoutMixingDocuments(t *testing.T) {
	ix := newTestIndex(t, "")
	for n := range 5 {
		apply(t, ix, doc(fmt.Sprintf("%d.md", n), fmt.Sprintf("animal%d", n)))
	}
	apply(t, ix, doc("2.md", "plant"), doc("9.md", "animal2"))
	ix.compact()
	for query, want := range map[string]string{"animal2": "9.md", "plant": "2.md"} {
		if got := found(t, ix, query, Filter{}); !slices.Equal(got, []string{want}) {
			t.Errorf("%s by keyword: %q", query, got)
		}
		if got := best(t, ix, query); got != want {
			t.Errorf("%s by vector: %q", query, got)
		}
	}
	if got := (Counts{6, 6, 6}); ix.Counts() != got || len(ix.slots) != 6 {
		t.Errorf("%+v in %d slots", ix.Counts(), len(ix.slots))
	}
}

func TestTiesAreDecidedByPathBytesAndOrdinal(t *testing.T) {
	ix := newTestIndex(t, "")
	// U+FFFF comes before U+1D538 in UTF-8, and after it in UTF-16.
	paths := []string{"b.md", "ä.md", "a.md", "Z.md", "a/b.md", "\uFFFF.md", "𝔸.md"}
	for _, path := range paths {
		apply(t, ix, doc(path, "the same words", "the same words"))
	}
	slices.Sort(paths)
	var want []string
	for _, path := range paths {
		want = append(want, path, path)
	}
	if got := found(t, ix, "same words", Filter{}); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	hits, err := ix.Keyword(t.Context(), "same", Filter{}, 3)
	if err != nil || ix.slots[hits[1].Slot].ordinal != 1 || ix.slots[hits[2].Slot].document.path != want[2] {
		t.Errorf("cut: %v, %v", hits, err)
	}
}

func TestTiesOfManyAreDecidedByPath(t *testing.T) {
	ix := newTestIndex(t, "")
	for n := 300; n > 0; n-- {
		apply(t, ix, doc(fmt.Sprintf("%03d.md", n), "the same words"))
	}
	hits, err := ix.Keyword(t.Context(), "same", Filter{}, 2)
	if err != nil || len(hits) != 2 {
		t.Fatal(hits, err)
	}
	for i, want := range []string{"001.md", "002.md"} {
		if got := ix.slots[hits[i].Slot].document.path; got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
}

func TestQuerySyntaxIsNotInterpreted(t *testing.T) {
	ix := newTestIndex(t, "")
	apply(t, ix, doc("a.md", "zebra"), doc("b.md", "near"))
	if got := found(t, ix, `NOT "zebra* AND (`, Filter{}); !slices.Equal(got, []string{"a.md"}) {
		t.Errorf("found %q", got)
	}
}

func TestFilters(t *testing.T) {
	ix := newTestIndex(t, "")
	with := func(path, session string, tags ...string) Document {
		d := doc(path, "zebra")
		d.Tags = tags
		if session != "" {
			d.Metadata["session_id"] = jsontext.Value(session)
		}
		return d
	}
	apply(t, ix,
		with("raw/a.md", `"s1"`, "x", "y"),
		with("raw_/b.md", "", "y"),
		with("memory/c.md", `"s2"`),
		with("memory/d.md", `7`),
	)
	all := []string{"memory/c.md", "memory/d.md", "raw/a.md", "raw_/b.md"}
	for _, test := range []struct {
		filter Filter
		want   []string
	}{
		{Filter{}, all},
		{Filter{Prefixes: []string{""}}, all},
		{Filter{Prefixes: []string{"raw"}}, all[2:]},
		{Filter{Prefixes: []string{"raw", "raw/"}}, all[2:3]},
		{Filter{Paths: []string{"raw/a.md", "nowhere"}}, all[2:3]},
		{Filter{Paths: []string{}}, []string{}},
		{Filter{Tags: []string{"y", "z"}}, all[2:]},
		{Filter{Tags: []string{"y"}, Prefixes: []string{"raw/"}}, all[2:3]},
		{Filter{Sessions: []string{"s2", "s1"}}, []string{"memory/c.md", "raw/a.md"}},
		{Filter{Sessions: []string{""}}, []string{}},
	} {
		if got := found(t, ix, "zebra", test.filter); !slices.Equal(got, test.want) {
			t.Errorf("%+v: %q, want %q", test.filter, got, test.want)
		}
	}
}

func TestIndexIsReopened(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.log")
	ix := newTestIndex(t, file)
	title := "T"
	d := doc("a.md", "zebra", "giraffe")
	d.Title = &title
	d.Tags = []string{"x"}
	d.Metadata["n"] = jsontext.Value("12345678901234567890")
	apply(t, ix, doc("gone.md", "lion"), d)
	if err := ix.Apply(nil, "gone.md"); err != nil {
		t.Fatal(err)
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	ix = newTestIndex(t, file)
	if got := found(t, ix, "giraffe lion", Filter{Tags: []string{"x"}}); !slices.Equal(got, []string{"a.md"}) {
		t.Errorf("found %q", got)
	}
	if got := best(t, ix, "zebra"); got != "a.md" || ix.Counts() != (Counts{1, 2, 2}) {
		t.Errorf("best %q of %+v", got, ix.Counts())
	}
	chunks, err := ix.Chunks([]rank.Hit{{Slot: 2}})
	if err != nil || *chunks[0].Title != "T" || string(chunks[0].Metadata["n"]) != "12345678901234567890" {
		t.Errorf("%+v, %v", chunks, err)
	}
	if stamps := ix.Stamps(); len(stamps) != 1 || stamps["a.md"] != "s" {
		t.Errorf("%v", stamps)
	}
}

func TestIndexOfAnotherEmbedderOrFormatIsReplaced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.log")
	ix := newTestIndex(t, file)
	apply(t, ix, doc("a.md", "zebra"))
	for _, step := range []struct {
		content  string // of the file, unless it is empty
		embedder string
		want     int
	}{{"", "fh256-1", 1}, {"", "none", 0}, {fmt.Sprintf("%099999d", 0), "none", 0}, {"", "fh256-1", 0}} {
		if step.content != "" {
			if err := os.WriteFile(file, []byte(step.content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		again, err := Open(file, step.embedder)
		if err != nil {
			t.Fatal(err)
		}
		if got := again.Counts().Documents; got != step.want {
			t.Errorf("%+v: %d documents", step, got)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestVectorsOfAnotherDimensionAreRefused(t *testing.T) {
	ix := newTestIndex(t, "")
	apply(t, ix, doc("a.md", "zebra"))
	odd := doc("b.md", "lion")
	odd.Vectors[0] = odd.Vectors[0][:100]
	var failure *problem.Error
	if err := ix.Apply([]Document{odd}); !errors.As(err, &failure) || failure.Code != problem.BadGateway {
		t.Errorf("Apply = %v", err)
	}
	if _, err := ix.Semantic(odd.Vectors[0], rank.Cosine, Filter{}, 1); !errors.As(err, &failure) {
		t.Errorf("Semantic = %v", err)
	}
	if ix.Counts() != (Counts{1, 1, 1}) {
		t.Errorf("%+v", ix.Counts())
	}
}

// ofDimensions returns a document of one chunk, whose vector has these dimensions.
func ofDimensions(path string, dims int) Document {
	d := doc(path, "hello")
	d.Vectors = []embed.Vector{make(embed.Vector, dims)}
	d.Vectors[0][0] = 1
	return d
}

func TestEmptiedIndexTakesVectorsOfOtherDimensions(t *testing.T) {
	for _, reopened := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "b.log")
		ix := newTestIndex(t, file)
		apply(t, ix, ofDimensions("a.md", 3))
		if err := ix.Apply(nil, "a.md"); err != nil {
			t.Fatal(err)
		}
		if reopened {
			_ = ix.Close()
			ix = newTestIndex(t, file)
		}
		other := ofDimensions("b.md", 5)
		if hits, err := ix.Semantic(other.Vectors[0], rank.Cosine, Filter{}, 1); err != nil || len(hits) != 0 {
			t.Errorf("reopened %v: %v, %v", reopened, hits, err)
		}
		apply(t, ix, other)
		hits, err := ix.Semantic(other.Vectors[0], rank.Cosine, Filter{}, 1)
		if err != nil || len(hits) != 1 || hits[0].Score != 1 {
			t.Errorf("reopened %v: %v, %v", reopened, hits, err)
		}
	}
}

func TestChangeThatFailsMidwayChangesNothing(t *testing.T) {
	ix := newTestIndex(t, "")
	apply(t, ix, doc("a.md", "zebra"))
	bad := doc("c.md", "lion")
	bad.Metadata["x"] = jsontext.Value("no JSON")
	if err := ix.Apply([]Document{doc("a.md", "tiger"), bad}); err == nil {
		t.Fatal("applied")
	}
	if got := found(t, ix, "zebra tiger lion", Filter{}); !slices.Equal(got, []string{"a.md"}) || best(t, ix, "zebra") != "a.md" {
		t.Errorf("found %q", got)
	}
	apply(t, ix, doc("b.md", "lion"))
	if ix.Counts() != (Counts{2, 2, 2}) {
		t.Errorf("%+v", ix.Counts())
	}
}

func TestQueryOfAClientThatIsGoneEnds(t *testing.T) {
	ix := newTestIndex(t, "")
	apply(t, ix, doc("a.md", "zebra"))
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if hits, err := ix.Keyword(ctx, "zebra", Filter{}, 9); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", hits, err)
	}
	if got := found(t, ix, "zebra", Filter{}); !slices.Equal(got, []string{"a.md"}) {
		t.Errorf("afterwards %q", got)
	}
}

// rescored is bm25 of the contract, computed from the texts alone.
func rescored(texts []string, query string) map[int]float64 {
	counts, total := make([]map[string]int, len(texts)), 0
	lengths := make([]int, len(texts))
	for i, content := range texts {
		counts[i] = map[string]int{}
		for token := range text.Tokens(content) {
			counts[i][string(token)]++
			lengths[i]++
		}
		total += lengths[i]
	}
	scores := map[int]float64{}
	for _, term := range text.QueryTerms(query) {
		var stem string
		for token := range text.Tokens(term) {
			stem = string(token)
		}
		with := 0
		for _, count := range counts {
			if count[stem] > 0 {
				with++
			}
		}
		idf := max(math.Log((float64(len(texts)-with)+0.5)/(float64(with)+0.5)), 1e-6)
		for i, count := range counts {
			if f := float64(count[stem]); f > 0 {
				mean := float64(total) / float64(len(texts))
				scores[i] += idf * f * 2.2 / (f + 1.2*(0.25+0.75*float64(lengths[i])/mean))
			}
		}
	}
	return scores
}

func TestChangesLeaveTheScoresOfANewIndex(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"walking", "walks", "zebra", "Überraschung", "的", "the", "runner"}
	ix := newTestIndex(t, "")
	texts := map[string]string{}
	for step := range 3000 {
		path := fmt.Sprint(random.IntN(40))
		if _, there := texts[path]; there && random.IntN(3) == 0 {
			delete(texts, path)
			if err := ix.Apply(nil, path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var content []string
		for range random.IntN(9) + 1 {
			content = append(content, words[random.IntN(len(words))])
		}
		texts[path] = strings.Join(content, " ")
		apply(t, ix, doc(path, texts[path]))
		if step%100 != 0 {
			continue
		}
		paths := slices.Sorted(maps.Keys(texts))
		var all []string
		for _, path := range paths {
			all = append(all, texts[path])
		}
		want := rescored(all, "walk the zebra walk überraschung")
		hits, err := ix.Keyword(t.Context(), "walk the zebra walk überraschung", Filter{}, 100)
		if err != nil || len(hits) != len(want) {
			t.Fatalf("%d hits, want %d, %v", len(hits), len(want), err)
		}
		for _, hit := range hits {
			place, _ := slices.BinarySearch(paths, ix.slots[hit.Slot].document.path)
			if math.Abs(hit.Score-want[place]) > 2e-9 {
				t.Errorf("%q: %v, want %v", all[place], hit.Score, want[place])
			}
		}
	}
}

func TestTermOfSeveralTokensIsAPhrase(t *testing.T) {
	// A letter for the contract, and none for SQLite's tokenizer.
	const letter = "\u1CF2"
	ix := newTestIndex(t, "")
	apply(t, ix, doc("a.md", "lions zebras"), doc("b.md", "zebra lion"), doc("c.md", "lion"))
	if got := found(t, ix, "lion"+letter+"zebra", Filter{}); !slices.Equal(got, []string{"a.md"}) {
		t.Errorf("found %q", got)
	}
	if got := found(t, ix, letter+letter, Filter{}); len(got) != 0 {
		t.Errorf("found %q", got)
	}
}
