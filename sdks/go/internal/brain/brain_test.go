package brain

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"memoryd/internal/embed"
	"memoryd/internal/files"
	"memoryd/internal/index"
	"memoryd/internal/problem"
	"memoryd/internal/wire"
)

func newTestStore(t *testing.T, home string, embedder embed.Embedder) *Store {
	t.Helper()
	store, err := NewStore(Home(home), embedder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func create(t *testing.T, store *Store, id string) *Brain {
	t.Helper()
	b, err := store.Create(t.Context(), id, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func get(t *testing.T, store *Store, id string) *Brain {
	t.Helper()
	b, err := store.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func text(path, content string) NewDocument {
	return NewDocument{Path: path, Content: []byte(content), Sidecar: Sidecar{ContentType: "text/markdown"}}
}

func ingest(t *testing.T, b *Brain, documents ...NewDocument) {
	t.Helper()
	if _, err := b.Ingest(t.Context(), documents); err != nil {
		t.Fatal(err)
	}
}

func find(t *testing.T, b *Brain, query string) []index.Chunk {
	t.Helper()
	var chunks []index.Chunk
	err := b.Read(func(ix *index.Index) error {
		hits, err := ix.Keyword(t.Context(), query, index.Filter{}, 100)
		if err != nil {
			return err
		}
		chunks, err = ix.Chunks(hits)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return chunks
}

func paths(t *testing.T, b *Brain, query string) []string {
	t.Helper()
	found := []string{}
	for _, c := range find(t, b, query) {
		found = append(found, c.Path)
	}
	return found
}

func expect(t *testing.T, b *Brain, query string, want ...string) {
	t.Helper()
	if got := paths(t, b, query); !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", query, got, want)
	}
}

func expectCode(t *testing.T, err error, code problem.Code) {
	t.Helper()
	var failure *problem.Error
	if !errors.As(err, &failure) || failure.Code != code {
		t.Errorf("%v, want %s", err, code)
	}
}

func storedFiles(t *testing.T, folder string) []string {
	t.Helper()
	found := []string{}
	err := files.Walk(t.Context(), folder, "", func(path string, _ fs.FileInfo) error {
		found = append(found, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestIngestReplacesTheSamePathOnly(t *testing.T) {
	b := create(t, newTestStore(t, t.TempDir(), embed.FeatureHash{}), "b")
	title := "T"
	old, other := text("a.md", "old zebra"), text("b.md", "zebra crossing")
	old.Sidecar.Title, other.Sidecar.Title = &title, &title
	ingest(t, b, old)
	ingest(t, b, text("a.md", "new giraffe"), other)
	expect(t, b, "zebra", "b.md")
	expect(t, b, "giraffe", "a.md")
	ingest(t, b, text("c.md", "first lion"), text("c.md", "last tiger"))
	expect(t, b, "lion tiger", "c.md")
	expect(t, b, "lion")
}

func TestHiddenAndBinaryDocumentsAreNotIndexed(t *testing.T) {
	home := t.TempDir()
	b := create(t, newTestStore(t, home, embed.FeatureHash{}), "b")
	bytes := text("a.bin", "\xff\xfe zebra")
	chunks, err := b.Ingest(t.Context(), []NewDocument{text("x/_h.md", "zebra"), bytes, text("empty.md", "")})
	if err != nil || !slices.Equal(chunks, []int{0, 0, 0}) {
		t.Errorf("%v, %v", chunks, err)
	}
	expect(t, b, "zebra")
	if counts, _ := b.Counts(t.Context()); counts != (index.Counts{Documents: 2}) {
		t.Errorf("%+v", counts)
	}
	stored, err := os.ReadFile(filepath.Join(home, "brains/b/x/_h.md"))
	if err != nil || string(stored) != "zebra" {
		t.Errorf("%q, %v", stored, err)
	}
}

func TestRequestOverridesFrontMatter(t *testing.T) {
	b := create(t, newTestStore(t, t.TempDir(), nil), "b")
	front := "---\ntitle: Front\ntags: [f]\nkind: note\nmine: no\n---\nzebra"
	ingest(t, b, text("a.md", front))
	given := text("b.md", front)
	title := "Given"
	given.Sidecar.Title = &title
	given.Sidecar.Metadata = wire.Object{"mine": jsontext.Value(`{"deep":[1e2]}`)}
	ingest(t, b, given)
	found := find(t, b, "zebra")
	if c := found[0]; *c.Title != "Front" || string(c.Metadata["mine"]) != `"no"` || c.Text != "zebra" {
		t.Errorf("%+v", c)
	}
	if c := found[1]; *c.Title != "Given" || string(c.Metadata["mine"]) != `{"deep":[1e2]}` ||
		string(c.Metadata["kind"]) != `"note"` {
		t.Errorf("%+v", c)
	}
	expect(t, b, "title note")
}

func TestFileAndFolderOfTheSameNameConflict(t *testing.T) {
	b := create(t, newTestStore(t, t.TempDir(), nil), "b")
	ingest(t, b, text("a", "zebra"), text("folder/x", "zebra"), text("s.json/x", "zebra"))
	for _, documents := range [][]NewDocument{
		{text("new.md", "giraffe"), text("a/b", "giraffe")},
		{text("new.md", "giraffe"), text("a/b/c", "giraffe")},
		{text("new.md", "giraffe"), text("folder", "giraffe")},
		{text("new.md", "giraffe"), text("c", "giraffe"), text("c/d", "giraffe")},
		{text("new.md", "giraffe"), text("e", "giraffe"), text("e.json/d", "giraffe")},
		{text("new.md", "giraffe"), text("a.json/b", "giraffe")},
		{text("new.md", "giraffe"), text("s", "giraffe")},
	} {
		_, err := b.Ingest(t.Context(), documents)
		expectCode(t, err, problem.Conflict)
	}
	expect(t, b, "giraffe")
}

func TestWriteThatFailsMidwayChangesNothing(t *testing.T) {
	home := t.TempDir()
	b := create(t, newTestStore(t, home, nil), "b")
	old := text("a.md", "zebra")
	title := "old"
	old.Sidecar.Title = &title
	ingest(t, b, old)
	// An index that is closed refuses what the files have taken already.
	if err := b.index.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Ingest(t.Context(), []NewDocument{text("new/b.md", "lion"), text("a.md", "lion")}); err == nil {
		t.Fatal("ingested")
	}
	if got := storedFiles(t, filepath.Join(home, "brains/b")); !slices.Equal(got, []string{"a.md"}) {
		t.Errorf("stored: %q", got)
	}
	content, _ := os.ReadFile(filepath.Join(home, "brains/b/a.md"))
	sidecar, _ := os.ReadFile(filepath.Join(home, "meta/b/a.md.json"))
	if string(content) != "zebra" || string(sidecar) != `{"contentType":"text/markdown","title":"old"}` {
		t.Errorf("%s, %s", content, sidecar)
	}
	if got, _ := filepath.Glob(filepath.Join(home, "staging/*/*/*")); len(got) != 0 {
		t.Errorf("left in staging: %q", got)
	}
}

func TestFailedEmbeddingStoresNothing(t *testing.T) {
	home := t.TempDir()
	b := create(t, newTestStore(t, home, &unavailableEmbedder{}), "b")
	_, err := b.Ingest(t.Context(), []NewDocument{text("a.md", "zebra")})
	expectCode(t, err, problem.BadGateway)
	if got := storedFiles(t, filepath.Join(home, "brains/b")); len(got) != 0 {
		t.Errorf("stored: %q", got)
	}
}

func TestBatchesAreLimitedInDocumentsAndBytes(t *testing.T) {
	var changed []stamped
	for range 300 {
		changed = append(changed, stamped{size: 1})
	}
	for range 3 {
		changed = append(changed, stamped{size: reconcileBytes})
	}
	var sizes []int
	for batch := range batches(changed) {
		sizes = append(sizes, len(batch))
	}
	if !slices.Equal(sizes, []int{256, 44, 1, 1, 1}) {
		t.Errorf("batches of %v", sizes)
	}
}

func TestNobodyWaitsForTheEmbedderOfARebuild(t *testing.T) {
	embedder := gated{asked: make(chan struct{}, 9), open: make(chan struct{})}
	b := create(t, newTestStore(t, t.TempDir(), embedder), "b")
	close(embedder.open)
	change(t, b, put("a", "slow zebra"), put("b", "lion"))
	<-embedder.asked
	// Rebuild, with an embedder that does not answer.
	embedder.open = make(chan struct{})
	b.embedder = embedder
	if err := b.write(func(ix *index.Index) error { return ix.Apply(nil, "a", "b") }); err != nil {
		t.Fatal(err)
	}
	b.upToDate.Store(false)
	counted := make(chan index.Counts, 1)
	go func() {
		counts, err := b.Counts(context.Background())
		if err != nil {
			t.Error(err)
		}
		counted <- counts
	}()
	<-embedder.asked
	if _, err := b.Stat(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	change(t, b, put("c", "zebra"), del("b"))
	close(embedder.open)
	if counts := <-counted; counts != (index.Counts{Documents: 2, Chunks: 2, Vectors: 2}) {
		t.Errorf("counted before the index was complete: %+v", counts)
	}
	expect(t, b, "zebra", "c", "a")
	expect(t, b, "lion")
}
