package index

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"memoryd/internal/embed"
	"memoryd/internal/problem"
	"memoryd/internal/rank"
	"memoryd/internal/wire"
)

func newTestIndex(t *testing.T, file string) *Index {
	t.Helper()
	ix, err := Open(t.Context(), file, "fh256-1")
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
	if err := ix.Apply(t.Context(), documents); err != nil {
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
	chunks, err := ix.Chunks(t.Context(), keyword)
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

func TestFreedSlotIsReusedWithoutMixingDocuments(t *testing.T) {
	ix := newTestIndex(t, "")
	for n := range 5 {
		apply(t, ix, doc(fmt.Sprintf("%d.md", n), fmt.Sprintf("animal%d", n)))
	}
	apply(t, ix, doc("2.md", "plant"), doc("9.md", "animal2"))
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

func TestTiesBeyondTheFetchedRowsAreDecidedByPath(t *testing.T) {
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

func TestNumberOfReadersDoesNotAffectTheResult(t *testing.T) {
	ix := newTestIndex(t, filepath.Join(t.TempDir(), "index"))
	documents := make([]Document, 2*slotsWorthAReader+1)
	for n := range documents {
		documents[n] = doc(fmt.Sprintf("%d.md", n), fmt.Sprintf("box%d holds item%d", n%500, n%7))
	}
	apply(t, ix, documents...)
	for _, filter := range []Filter{{}, {Prefixes: []string{"1"}}} {
		ix.readers = 1
		want, err := ix.Keyword(t.Context(), "box3 item5", filter, 50)
		if err != nil || len(want) != 50 {
			t.Fatal(want, err)
		}
		ix.readers = 3
		if got, err := ix.Keyword(t.Context(), "box3 item5", filter, 50); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v, want %v", got, err, want)
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

func TestCancelledSearchKeepsAnInMemoryIndex(t *testing.T) {
	ix := newTestIndex(t, "")
	for n := range 500 {
		apply(t, ix, doc(fmt.Sprintf("%d.md", n), "zebra"))
	}
	for n := range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		// short limit: it may be cancelled at any moment
		time.AfterFunc(time.Duration(n)*50*time.Microsecond, cancel)
		hits, err := ix.Keyword(ctx, "zebra", Filter{}, 20)
		if err == nil {
			_, err = ix.Chunks(ctx, hits)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := found(t, ix, "zebra", Filter{}); len(got) != 100 {
		t.Errorf("found %d", len(got))
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
	file := filepath.Join(t.TempDir(), "b.sqlite")
	ix := newTestIndex(t, file)
	title := "T"
	d := doc("a.md", "zebra", "giraffe")
	d.Title = &title
	d.Tags = []string{"x"}
	d.Metadata["n"] = jsontext.Value("12345678901234567890")
	apply(t, ix, doc("gone.md", "lion"), d)
	if err := ix.Apply(t.Context(), nil, "gone.md"); err != nil {
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
	chunks, err := ix.Chunks(t.Context(), []rank.Hit{{Slot: 2}})
	if err != nil || *chunks[0].Title != "T" || string(chunks[0].Metadata["n"]) != "12345678901234567890" {
		t.Errorf("%+v, %v", chunks, err)
	}
	stamps, err := ix.Stamps(t.Context())
	if err != nil || len(stamps) != 1 || stamps["a.md"] != "s" {
		t.Errorf("%v, %v", stamps, err)
	}
}

func TestUnusableIndexIsReplaced(t *testing.T) {
	damage := map[string]func(file string) error{
		"no database": func(file string) error {
			return os.WriteFile(file, []byte(fmt.Sprintf("%099999d", 0)), 0o644)
		},
		"cut": func(file string) error { return os.Truncate(file, 5000) },
		"overwritten": func(file string) error {
			handle, err := os.OpenFile(file, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = handle.WriteAt(make([]byte, 30_000), 4096)
			return errors.Join(err, handle.Close())
		},
	}
	for name, do := range damage {
		file := filepath.Join(t.TempDir(), "b.sqlite")
		ix := newTestIndex(t, file)
		for n := range 100 {
			apply(t, ix, doc(fmt.Sprintf("%d.md", n), "zebra"))
		}
		if err := errors.Join(ix.Close(), do(file)); err != nil {
			t.Fatal(err)
		}
		if got := newTestIndex(t, file).Counts(); got != (Counts{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	file := filepath.Join(t.TempDir(), "b.sqlite")
	ix := newTestIndex(t, file)
	apply(t, ix, doc("a.md", "zebra"))
	_ = ix.Close()
	other, err := Open(t.Context(), file, "none")
	if err != nil {
		t.Fatal(err)
	}
	if got := other.Counts(); got != (Counts{}) {
		t.Errorf("another embedder: %+v", got)
	}
	_ = other.Close()
}

func TestVectorsOfAnotherDimensionAreRefused(t *testing.T) {
	ix := newTestIndex(t, "")
	apply(t, ix, doc("a.md", "zebra"))
	odd := doc("b.md", "lion")
	odd.Vectors[0] = odd.Vectors[0][:100]
	var failure *problem.Error
	if err := ix.Apply(t.Context(), []Document{odd}); !errors.As(err, &failure) || failure.Code != problem.BadGateway {
		t.Errorf("Apply = %v", err)
	}
	if _, err := ix.Semantic(odd.Vectors[0], rank.Cosine, Filter{}, 1); !errors.As(err, &failure) {
		t.Errorf("Semantic = %v", err)
	}
	if ix.Counts() != (Counts{1, 1, 1}) {
		t.Errorf("%+v", ix.Counts())
	}
}

func TestChangeThatFailsMidwayChangesNothing(t *testing.T) {
	ix := newTestIndex(t, "")
	apply(t, ix, doc("a.md", "zebra"))
	bad := doc("c.md", "lion")
	bad.Metadata["x"] = jsontext.Value("no JSON")
	if err := ix.Apply(t.Context(), []Document{doc("a.md", "tiger"), bad}); err == nil {
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

func TestCancelledCallerIsNotDamage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.sqlite")
	ix, err := Open(t.Context(), file, "none")
	if err != nil {
		t.Fatal(err)
	}
	if err := ix.Apply(t.Context(), []Document{{Path: "a.md", Chunks: []string{"zebra"}}}); err != nil {
		t.Fatal(err)
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	again, err := Open(gone, file, "none")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	if counts := again.Counts(); counts.Documents != 1 {
		t.Errorf("%d documents are left", counts.Documents)
	}
}

func TestQueryOfAClientThatIsGoneEnds(t *testing.T) {
	ix := newTestIndex(t, filepath.Join(t.TempDir(), "index"))
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
