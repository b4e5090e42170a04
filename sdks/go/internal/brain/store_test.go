package brain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"memoryd/internal/embed"
	"memoryd/internal/files"
	"memoryd/internal/index"
	"memoryd/internal/problem"
)

// unavailableEmbedder is an embedder that fails until it is made available.
type unavailableEmbedder struct {
	embed.FeatureHash
	available bool
}

func (e *unavailableEmbedder) Embed(ctx context.Context, texts []string) ([]embed.Vector, error) {
	if !e.available {
		return nil, problem.New(problem.BadGateway, "unavailable")
	}
	return e.FeatureHash.Embed(ctx, texts)
}

func TestBrainWithUnavailableEmbedderIsRetried(t *testing.T) {
	home := t.TempDir()
	store := newTestStore(t, home, nil)
	ingest(t, create(t, store, "b"), text("a.md", "zebra"))
	create(t, store, "c")
	_ = store.Close()
	embedder := &unavailableEmbedder{}
	store = newTestStore(t, home, embedder)
	store.OpenAll(t.Context())
	_, err := store.Get(t.Context(), "b")
	expectCode(t, err, problem.BadGateway)
	embedder.available = true
	expect(t, get(t, store, "b"), "zebra", "a.md")
	embedder.available = false
	if err := store.Delete(t.Context(), "b"); err != nil {
		t.Error(err)
	}
}

func TestIndexFollowsTheFiles(t *testing.T) {
	home := t.TempDir()
	store := newTestStore(t, home, embed.FeatureHash{})
	b := create(t, store, "b")
	for n := range 300 {
		ingest(t, b, text(fmt.Sprintf("%d.md", n), fmt.Sprintf("zebra%d", n)))
	}
	_ = store.Close()
	folder := filepath.Join(home, "brains/b")
	for _, err := range []error{
		os.Remove(filepath.Join(folder, "0.md")),
		os.WriteFile(filepath.Join(folder, "1.md"), []byte("---\ntitle: New\n---\ngiraffe"), 0o644),
		os.Mkdir(filepath.Join(folder, "sub"), 0o755),
		os.WriteFile(filepath.Join(folder, "sub/new.md"), []byte("elephant"), 0o644),
		os.WriteFile(filepath.Join(folder, "_hidden.md"), []byte("elephant"), 0o644),
		os.WriteFile(filepath.Join(home, "meta/b/2.md.json"), []byte("no JSON"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	b = get(t, newTestStore(t, home, embed.FeatureHash{}), "b")
	expect(t, b, "zebra0 zebra1 zebra2", "2.md")
	expect(t, b, "giraffe", "1.md")
	expect(t, b, "elephant", "sub/new.md")
	if counts, _ := b.Counts(t.Context()); counts != (index.Counts{Documents: 300, Chunks: 300, Vectors: 300}) {
		t.Errorf("%+v", counts)
	}
}

func TestDamagedIndexIsRebuiltFromTheFiles(t *testing.T) {
	home := t.TempDir()
	store := newTestStore(t, home, embed.FeatureHash{})
	ingest(t, create(t, store, "b"), text("a.md", "zebra"))
	_ = store.Close()
	err := os.WriteFile(filepath.Join(home, "index/go/b.log"), []byte("no log"), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, get(t, newTestStore(t, home, embed.FeatureHash{}), "b"), "zebra", "a.md")
}

func TestIndexesOfAnOlderFormatAreRemoved(t *testing.T) {
	home := t.TempDir()
	store := newTestStore(t, home, embed.FeatureHash{})
	ingest(t, create(t, store, "b"), text("a.md", "zebra"))
	ingest(t, create(t, store, "b.sqlite"), text("a.md", "zebra"))
	_ = store.Close()
	older := []string{"b.sqlite", "b.sqlite-wal", "b.sqlite-shm", "gone.sqlite", "gone.sqlite-journal"}
	kept := []string{
		"index/go/b.log", "index/go/b.sqlite.log", "index/other/b.sqlite", "brains/b/n.sqlite", "brains/b.sqlite/a.md",
	}
	if err := os.Mkdir(filepath.Join(home, "index/other"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range older {
		if err := os.WriteFile(filepath.Join(home, "index/go", name), []byte("zebra"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"index/other/b.sqlite", "brains/b/n.sqlite"} {
		if err := os.WriteFile(filepath.Join(home, name), []byte("zebra"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	newTestStore(t, home, embed.FeatureHash{})
	for _, name := range older {
		if _, err := os.Stat(filepath.Join(home, "index/go", name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
	for _, name := range kept {
		if _, err := os.Stat(filepath.Join(home, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestSecondDaemonBuildsItsOwnIndex(t *testing.T) {
	home := t.TempDir()
	store := newTestStore(t, home, embed.FeatureHash{})
	b := create(t, store, "b")
	ingest(t, b, text("a.md", "zebra"))
	second := get(t, newTestStore(t, home, embed.FeatureHash{}), "b")
	if second.owner != nil {
		t.Error("both hold the index")
	}
	expect(t, second, "zebra", "a.md")
	ingest(t, second, text("b.md", "giraffe"))
	expect(t, b, "giraffe")
}

func TestRecreatedBrainIsEmpty(t *testing.T) {
	home := t.TempDir()
	store := newTestStore(t, home, embed.FeatureHash{})
	description := "first"
	b, err := store.Create(t.Context(), "b", &description)
	if err != nil {
		t.Fatal(err)
	}
	ingest(t, b, text("a.md", "zebra"))
	ingest(t, create(t, store, "b.log"), text("n.md", "zebra"))
	_, err = store.Create(t.Context(), "b", nil)
	expectCode(t, err, problem.Conflict)
	if err := store.Delete(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	_, err = b.Ingest(t.Context(), []NewDocument{text("late.md", "zebra")})
	expectCode(t, err, problem.NotFound)
	_, err = b.Subscribe()
	expectCode(t, err, problem.NotFound)
	_, err = store.Get(t.Context(), "b")
	expectCode(t, err, problem.NotFound)
	b = create(t, store, "b")
	if got, err := b.Description(); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	expect(t, b, "zebra")
	if files.Exists(filepath.Join(home, "meta/b")) {
		t.Error("sidecars are left")
	}
	expect(t, get(t, store, "b.log"), "zebra", "n.md")
}

func TestIDs(t *testing.T) {
	store := newTestStore(t, t.TempDir(), nil)
	for _, id := range []string{"", ".", "..", "a b", "a/b", "é", fmt.Sprintf("%0129d", 0), "a\n"} {
		_, err := store.Create(t.Context(), id, nil)
		expectCode(t, err, problem.Validation)
		_, err = store.Get(t.Context(), id)
		expectCode(t, err, problem.Validation)
	}
	for _, id := range []string{"z", "A.b_c-9", "..."} {
		create(t, store, id)
	}
	if got, err := store.IDs(); err != nil || !slices.Equal(got, []string{"...", "A.b_c-9", "z"}) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestWaitingForABrainCanBeCancelled(t *testing.T) {
	store := newTestStore(t, t.TempDir(), nil)
	create(t, store, "b")
	_ = store.exclusively(t.Context(), "b", func() error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := store.Delete(ctx, "b"); !errors.Is(err, context.Canceled) {
			t.Errorf("Delete = %v", err)
		}
		return nil
	})
}

// gateEmbedder embeds nothing until it is released, or its caller is cancelled.
type gateEmbedder struct {
	embed.FeatureHash
	called  chan struct{}
	release chan struct{}
	calls   atomic.Int32
}

func (e *gateEmbedder) Embed(ctx context.Context, texts []string) ([]embed.Vector, error) {
	if e.calls.Add(1) == 1 {
		close(e.called)
	}
	select {
	case <-e.release:
		return e.FeatureHash.Embed(ctx, texts)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// unopened returns a store whose only brain has to be embedded before it is open.
func unopened(t *testing.T) (*Store, *gateEmbedder) {
	t.Helper()
	home := t.TempDir()
	without := newTestStore(t, home, nil)
	ingest(t, create(t, without, "b"), NewDocument{Path: "a.md", Content: []byte("zebra")})
	if err := without.Close(); err != nil {
		t.Fatal(err)
	}
	embedder := &gateEmbedder{called: make(chan struct{}), release: make(chan struct{})}
	return newTestStore(t, home, embedder), embedder
}

func TestOpeningGoesOnWhenItsClientGivesUp(t *testing.T) {
	store, embedder := unopened(t)
	ctx, giveUp := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := store.Get(ctx, "b")
		failed <- err
	}()
	<-embedder.called
	giveUp()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("Get = %v", err)
	}
	close(embedder.release)
	expect(t, get(t, store, "b"), "zebra", "a.md")
	if calls := embedder.calls.Load(); calls != 1 {
		t.Errorf("%d calls to the embedder", calls)
	}
}

func TestDeletingABrainEndsItsOpening(t *testing.T) {
	store, embedder := unopened(t)
	failed := make(chan error, 1)
	go func() {
		_, err := store.Get(t.Context(), "b")
		failed <- err
	}()
	<-embedder.called
	if err := store.Delete(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	expectCode(t, <-failed, problem.NotFound)
}

func TestClosingEndsAnOpening(t *testing.T) {
	store, embedder := unopened(t)
	failed := make(chan error, 1)
	go func() {
		_, err := store.Get(t.Context(), "b")
		failed <- err
	}()
	<-embedder.called
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("Get = %v", err)
	}
}

// An opening that has seen that the store is open is counted under the same lock.
func TestStoreDoesNotCloseBetweenAnOpeningsCheckAndItsCount(t *testing.T) {
	store := newTestStore(t, t.TempDir(), nil)
	store.mu.Lock()
	closed := make(chan error, 1)
	go func() { closed <- store.Close() }()
	for range 1000 {
		runtime.Gosched() // short limit: only a wrong store is caught by it
	}
	if store.closing.Err() != nil {
		t.Error("the store is closing")
	}
	store.mu.Unlock()
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
