package brain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"memoryd/internal/embed"
	"memoryd/internal/feed"
	"memoryd/internal/files"
	"memoryd/internal/index"
	"memoryd/internal/problem"
)

func put(path, content string) Operation {
	return Operation{Kind: Write, Path: path, Content: []byte(content)}
}

func add(path, content string) Operation {
	return Operation{Kind: Append, Path: path, Content: []byte(content)}
}

func del(path string) Operation { return Operation{Kind: Delete, Path: path} }

func rename(from, to string) Operation { return Operation{Kind: Rename, Path: from, To: to} }

func change(t *testing.T, b *Brain, operations ...Operation) {
	t.Helper()
	if err := b.Change(t.Context(), operations, nil); err != nil {
		t.Fatal(err)
	}
}

// contents returns all files of a folder, by path.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, path := range storedFiles(t, folder) {
		content, err := os.ReadFile(filepath.Join(folder, path))
		if err != nil {
			t.Fatal(err)
		}
		found[path] = string(content)
	}
	return found
}

func received(s *feed.Subscription) []string {
	var lines []string
	for {
		select {
		case c, open := <-s.Changes:
			if !open {
				return append(lines, "end")
			}
			line := string(c.Kind) + " " + c.Path
			if c.OldPath != "" {
				line += " from " + c.OldPath
			}
			if c.Reason != nil {
				line += " because " + *c.Reason
			}
			lines = append(lines, line)
		default:
			return lines
		}
	}
}

func TestOperationsBuildOnEachOther(t *testing.T) {
	for name, test := range map[string]struct {
		operations []Operation
		want       map[string]string
		received   []string
	}{
		"write and append": {
			[]Operation{put("a", "new"), add("a", " more"), add("c/d", "made"), put("c/e", "")},
			map[string]string{"a": "new more", "b": "old b", "c/d": "made", "c/e": ""},
			[]string{"updated a", "updated a", "created c/d", "created c/e"},
		},
		"delete and write": {
			[]Operation{del("a"), put("a", "new"), put("t", ""), del("t")},
			map[string]string{"a": "new", "b": "old b"},
			[]string{"deleted a", "created a", "created t", "deleted t"},
		},
		"a chain of renames": {
			[]Operation{rename("a", "t"), rename("b", "a"), rename("t", "b"), rename("b", "b")},
			map[string]string{"a": "old b", "b": "old a"},
			[]string{"renamed t from a", "renamed a from b", "renamed b from t"},
		},
		"over another":              {[]Operation{rename("a", "b")}, map[string]string{"b": "old a"}, []string{"renamed b from a"}},
		"below its old self":        {[]Operation{rename("a", "a/b/c")}, map[string]string{"a/b/c": "old a", "b": "old b"}, []string{"renamed a/b/c from a"}},
		"below its own sidecar":     {[]Operation{rename("a", "a.json/b")}, map[string]string{"a.json/b": "old a", "b": "old b"}, []string{"renamed a.json/b from a"}},
		"a folder becomes its file": {[]Operation{put("f/g/h", "h"), rename("f/g/h", "f")}, map[string]string{"a": "old a", "b": "old b", "f": "h"}, []string{"created f/g/h", "renamed f from f/g/h"}},
		"nothing":                   {[]Operation{rename("a", "a")}, map[string]string{"a": "old a", "b": "old b"}, nil},
	} {
		home := t.TempDir()
		b := create(t, newTestStore(t, home, embed.FeatureHash{}), "b")
		ingest(t, b, text("a", "old a"), text("b", "old b"))
		s, err := b.Subscribe()
		if err != nil {
			t.Fatal(err)
		}
		change(t, b, test.operations...)
		if got := contents(t, filepath.Join(home, "brains/b")); !maps.Equal(got, test.want) {
			t.Errorf("%s: %q", name, got)
		}
		if got := received(s); !slices.Equal(got, test.received) {
			t.Errorf("%s: received %q", name, got)
		}
		if counts, _ := b.Counts(t.Context()); counts.Documents != len(test.want) || counts.Chunks != counts.Vectors {
			t.Errorf("%s: %+v", name, counts)
		}
		if left, _ := filepath.Glob(filepath.Join(home, "staging/*/*/*")); len(left) != 0 {
			t.Errorf("%s: left in staging: %v", name, left)
		}
	}
}

func TestRefusedOperationUndoesThoseBeforeIt(t *testing.T) {
	home := t.TempDir()
	b := create(t, newTestStore(t, home, nil), "b")
	// Neither of these has a sidecar; the rules are of documents.
	change(t, b, put("a", "zebra"), put("folder/x", "zebra"), put("s.json/x", "zebra"), put("deep/x.json/y/z", "zebra"))
	s, err := b.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	before := contents(t, filepath.Join(home, "brains/b"))
	for _, test := range []struct {
		last Operation
		code problem.Code
	}{
		{put("a/b", "lion"), problem.Conflict},
		{add("a/b/c", "lion"), problem.Conflict},
		{put("folder", "lion"), problem.Conflict},
		{put("a.json/b", "lion"), problem.Conflict},
		{put("s", "lion"), problem.Conflict},
		{put("deep/x", "lion"), problem.Conflict},
		{put("new/x/y", "lion"), problem.Conflict},
		{put("new", "lion"), problem.Conflict},
		{put("new/x.json/y", "lion"), problem.Conflict},
		{rename("folder/x", "a/x"), problem.Conflict},
		{rename("a", "folder"), problem.Conflict},
		{rename("no", "yes"), problem.NotFound},
		{rename("no", "no"), problem.NotFound},
		{rename("folder", "elsewhere"), problem.NotFound},
		{del("folder"), problem.NotFound},
		{del("no"), problem.NotFound},
	} {
		err := b.Change(t.Context(), []Operation{put("new/x", "lion"), put("a", "lion"), test.last}, nil)
		expectCode(t, err, test.code)
		var refused *Refusal
		if !errors.As(err, &refused) || refused.Index != 2 {
			t.Errorf("%+v: %v", test.last, err)
		}
	}
	if got := contents(t, filepath.Join(home, "brains/b")); !maps.Equal(got, before) || received(s) != nil {
		t.Errorf("%q", got)
	}
	expect(t, b, "lion")
}

func TestNothingIsWrittenThroughALink(t *testing.T) {
	home, outside := t.TempDir(), t.TempDir()
	b := create(t, newTestStore(t, home, nil), "b")
	ingest(t, b, text("a.md", "zebra"))
	if err := os.WriteFile(filepath.Join(outside, "x.md"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"brains/b/link", "meta/b/meta"} {
		if err := os.Symlink(outside, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, doc := range []NewDocument{text("link/new.md", "x"), text("link/x.md", "x"), text("meta/new.md", "x")} {
		_, err := b.Ingest(t.Context(), []NewDocument{doc})
		expectCode(t, err, problem.Conflict)
	}
	expectCode(t, b.Change(t.Context(), []Operation{del("link/x.md")}, nil), problem.NotFound)
	_, err := b.Open("link/x.md")
	expectCode(t, err, problem.NotFound)
	if got := contents(t, outside); !maps.Equal(got, map[string]string{"x.md": "secret"}) {
		t.Errorf("%v", got)
	}
}

func TestFailingIndexRestoresTheFiles(t *testing.T) {
	home := t.TempDir()
	b := create(t, newTestStore(t, home, nil), "b")
	ingest(t, b, text("a/b", "zebra"), text("c", "zebra"))
	s, err := b.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	before, beside := contents(t, filepath.Join(home, "brains/b")), contents(t, filepath.Join(home, "meta/b"))
	if err := b.index.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Change(t.Context(), []Operation{rename("a/b", "a"), del("c"), put("c/d", "new")}, nil); err == nil {
		t.Fatal("changed")
	}
	if got := contents(t, filepath.Join(home, "brains/b")); !maps.Equal(got, before) {
		t.Errorf("%q", got)
	}
	if got := contents(t, filepath.Join(home, "meta/b")); !maps.Equal(got, beside) || received(s) != nil {
		t.Errorf("%q", got)
	}
}

func TestIngestPublishesEachPathOnce(t *testing.T) {
	b := create(t, newTestStore(t, t.TempDir(), nil), "b")
	ingest(t, b, text("a", "zebra"))
	s, err := b.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	ingest(t, b, text("c", "first"), text("_h", "x"), text("a", "lion"), text("c", "last"))
	if got := received(s); !slices.Equal(got, []string{"created _h", "updated a", "created c"}) {
		t.Errorf("%q", got)
	}
	_, err = b.Ingest(t.Context(), []NewDocument{text("d", "x"), text("d", "x"), text("a/b", "x")})
	var refused *Refusal
	if !errors.As(err, &refused) || refused.Index != 2 || received(s) != nil {
		t.Errorf("%v", err)
	}
}

// gated is an embedder that blocks on texts that contain `slow`.
type gated struct {
	embed.FeatureHash
	asked, open chan struct{}
}

func (e gated) Embed(ctx context.Context, texts []string) ([]embed.Vector, error) {
	if strings.Contains(texts[0], "slow") {
		e.asked <- struct{}{}
		select {
		case <-e.open:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return e.FeatureHash.Embed(ctx, texts)
}

func TestChangesDoNotWaitForEachOthersEmbedding(t *testing.T) {
	embedder := gated{asked: make(chan struct{}, 9), open: make(chan struct{})}
	b := create(t, newTestStore(t, t.TempDir(), embedder), "b")
	change(t, b, put("a", "zebra"))
	slow := make(chan error, 1)
	go func() { slow <- b.Change(context.Background(), []Operation{add("a", " slow")}, nil) }()
	<-embedder.asked
	expect(t, b, "zebra", "a")
	change(t, b, add("a", " quick"))
	close(embedder.open)
	if err := <-slow; err != nil {
		t.Fatal(err)
	}
	expect(t, b, "slow", "a")
	expect(t, b, "quick", "a")
}

func TestNoAppendIsLost(t *testing.T) {
	home := t.TempDir()
	b := create(t, newTestStore(t, home, embed.FeatureHash{}), "b")
	var writers sync.WaitGroup
	for n := range 20 {
		writers.Add(1)
		go func() {
			defer writers.Done()
			if err := b.Change(context.Background(), []Operation{add("a", fmt.Sprintf("<%d>", n))}, nil); err != nil {
				t.Error(err)
			}
		}()
	}
	writers.Wait()
	content := contents(t, filepath.Join(home, "brains/b"))["a"]
	for n := range 20 {
		if !strings.Contains(content, fmt.Sprintf("<%d>", n)) {
			t.Errorf("%d is not in %s", n, content)
		}
	}
}

func TestFailingEmbedderChangesNothing(t *testing.T) {
	home := t.TempDir()
	embedder := &unavailableEmbedder{available: true}
	b := create(t, newTestStore(t, home, embedder), "b")
	change(t, b, put("a", "zebra"))
	embedder.available = false
	for _, operation := range []Operation{put("b", "lion"), add("a", " lion"), rename("a", "b"), put("a", "lion")} {
		expectCode(t, b.Change(t.Context(), []Operation{operation}, nil), problem.BadGateway)
	}
	// Documents without text do not need the embedder.
	change(t, b, put("_hidden", "lion"), del("_hidden"))
	if got := contents(t, filepath.Join(home, "brains/b")); !maps.Equal(got, map[string]string{"a": "zebra"}) {
		t.Errorf("%q", got)
	}
	if counts, _ := b.Counts(t.Context()); counts != (index.Counts{Documents: 1, Chunks: 1, Vectors: 1}) {
		t.Errorf("%+v", counts)
	}
}

func TestFailedUndoOfAChangeThatIsNotIndexedLeavesTheIndexOutOfDate(t *testing.T) {
	home := t.TempDir()
	b := create(t, newTestStore(t, home, nil), "b")
	ingest(t, b, text("a", "zebra"))
	err := b.write(func(ix *index.Index) error {
		d, err := b.draft(t.Context(), []Operation{put("a", "lion")})
		if err != nil {
			t.Fatal(err)
		}
		contents, removed, err := b.effect(d)
		if err != nil {
			t.Fatal(err)
		}
		placed, err := files.Place(b.staging, contents, removed)
		if err != nil {
			t.Fatal(err)
		}
		journals, _ := filepath.Glob(filepath.Join(home, "staging/*/*/journal"))
		if len(journals) != 1 {
			t.Fatalf("journals: %v", journals)
		}
		// Nothing can be removed from a folder that is a file by now.
		folder := filepath.Dir(journals[0])
		if err := errors.Join(os.Rename(folder, folder+" aside"), os.WriteFile(folder, nil, 0o600), b.index.Close()); err != nil {
			t.Fatal(err)
		}
		documents, err := d.changedDocuments()
		if err != nil {
			t.Fatal(err)
		}
		return b.keep(t.Context(), ix, d, documents, placed)
	})
	if err == nil || b.upToDate.Load() {
		t.Errorf("%v, up to date: %v", err, b.upToDate.Load())
	}
}

func TestRenamingToItselfEndsNoStreamThatHasManyChangesWaiting(t *testing.T) {
	b := create(t, newTestStore(t, t.TempDir(), nil), "b")
	s, err := b.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	change(t, b, slices.Repeat([]Operation{put("_a", "x")}, 1024)...)
	change(t, b, rename("_a", "_a"))
	if got := received(s); len(got) != 1024 {
		t.Errorf("received %d changes", len(got))
	}
	change(t, b, put("_a", "y"))
	if got := received(s); !slices.Equal(got, []string{"updated _a"}) {
		t.Errorf("received %q", got)
	}
}
