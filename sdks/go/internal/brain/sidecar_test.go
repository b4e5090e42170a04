package brain

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"memoryd/internal/files"
	"memoryd/internal/wire"
)

func TestInvalidSidecarKeysAreIgnored(t *testing.T) {
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	for given, want := range map[string]string{
		`{"contentType":"t","title":"T","tags":["x"],"metadata":{"n":1e2}}`:        `{"contentType":"t","title":"T","tags":["x"],"metadata":{"n":1e2}}`,
		`{"contentType":5,"title":"T","tags":[],"other":5}`:                        `{"contentType":"","title":"T","tags":[]}`,
		`{"contentType":"t","title":["T"],"tags":["x"]}`:                           `{"contentType":"t","tags":["x"]}`,
		`{"contentType":"t","title":"T","tags":["x",null],"metadata":[]}`:          `{"contentType":"t","title":"T"}`,
		`{"contentType":"t","title":null,"tags":"x"}`:                              `{"contentType":"t"}`,
		`{"contentType":"t","metadata":{"deep":` + deep + `,"big":1e999,"ok":[]}}`: `{"contentType":"t","metadata":{"ok":[]}}`,
		`[]`:      `{"contentType":""}`,
		`no JSON`: `{"contentType":""}`,
		``:        `{"contentType":""}`,
	} {
		got, err := wire.Marshal(parseSidecar([]byte(given)))
		if err != nil || string(got) != want {
			t.Errorf("%.90s: %s, %v", given, got, err)
		}
	}
}

func TestSidecarFollowsItsDocument(t *testing.T) {
	home := t.TempDir()
	b := create(t, newTestStore(t, home, nil), "b")
	with := func(path string) NewDocument {
		doc, title := text(path, "zebra"), path
		doc.Sidecar.Title = &title
		return doc
	}
	ingest(t, b, with("a"), with("b"), with("c"), with("d"), with("e/f"))
	change(t, b, put("plain", "zebra"),
		put("a", "zebra two"), add("b", " two"), del("c"), put("c", "zebra"), rename("d", "m/n"), rename("plain", "e/f"))
	titles := map[string]string{}
	for _, c := range find(t, b, "zebra") {
		titles[c.Path] = "none"
		if c.Title != nil {
			titles[c.Path] = *c.Title
		}
	}
	if want := (map[string]string{"a": "a", "b": "b", "c": "none", "m/n": "d", "e/f": "none"}); !maps.Equal(titles, want) {
		t.Errorf("%v", titles)
	}
	if got := storedFiles(t, filepath.Join(home, "meta/b")); !slices.Equal(got, []string{"a.json", "b.json", "m/n.json"}) {
		t.Errorf("%q", got)
	}
	change(t, b, del("m/n"))
	if files.Exists(filepath.Join(home, "meta/b/m")) || files.Exists(filepath.Join(home, "brains/b/m")) {
		t.Error("empty folders are left")
	}
}

func TestSidecarsOfDocumentsRemovedByHandDoNotConflict(t *testing.T) {
	home := t.TempDir()
	b := create(t, newTestStore(t, home, nil), "b")
	old := text("a", "zebra")
	title := "old"
	old.Sidecar.Title = &title
	ingest(t, b, old, text("s.json/x", "zebra"))
	for _, path := range []string{"a", "s.json"} {
		if err := os.RemoveAll(filepath.Join(home, "brains/b", path)); err != nil {
			t.Fatal(err)
		}
	}
	ingest(t, b, text("a.json/b", "lion"), text("s", "lion"))
	change(t, b, put("a.md", "lion"))
	if got := storedFiles(t, filepath.Join(home, "meta/b")); !slices.Equal(got, []string{"a.json/b.json", "s.json"}) {
		t.Errorf("%q", got)
	}
}
