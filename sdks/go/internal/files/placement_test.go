package files

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"memoryd/internal/problem"
)

// contents returns the files below root, with `folder` as the content of folders.
func contents(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path, _ := filepath.Rel(root, name)
		if entry.IsDir() {
			files[path] = "folder"
			return nil
		}
		content, err := os.ReadFile(name)
		files[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// documentsOf returns the contents without folders, because empty ones do not exist for the contract.
func documentsOf(t *testing.T, root string) map[string]string {
	t.Helper()
	files := contents(t, root)
	maps.DeleteFunc(files, func(_, content string) bool { return content == "folder" })
	return files
}

// newBrain returns the folder of a brain in a state folder of its own, and the staging folder.
func newBrain(t *testing.T) (root string, staging *Staging) {
	t.Helper()
	home := t.TempDir()
	root = filepath.Join(home, "brains/b")
	for _, folder := range []string{root, filepath.Join(home, "staging")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	staging, err := OpenStaging(home)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = staging.Close() })
	return root, staging
}

func write(t *testing.T, staging *Staging, root, path, content string) {
	t.Helper()
	placed, err := Place(staging, []Content{{Location{root, path}, []byte(content)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := placed.Keep(); err != nil {
		t.Fatal(err)
	}
}

// changesIn returns the folders of changes that are left in staging.
func changesIn(t *testing.T, staging *Staging) []string {
	t.Helper()
	changes, err := filepath.Glob(filepath.Join(staging.root, "*", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

// TestPlacement makes and undoes changes of a root with `old.md`, `x/y/z.md` and the folder
// `empty/folder`.
func TestPlacement(t *testing.T) {
	for name, test := range map[string]struct {
		placed  map[string]string
		removed []string
		want    map[string]string // files only
	}{
		"new and over": {
			placed: map[string]string{"old.md": "new", "a/b/c.md": "c", "a/d/e.md": "e"},
			want:   map[string]string{"old.md": "new", "a/b/c.md": "c", "a/d/e.md": "e", "x/y/z.md": "z"},
		},
		"removed":            {removed: []string{"x/y/z.md"}, want: map[string]string{"old.md": "old"}},
		"removed for nought": {removed: []string{"no", "old.md/no"}, want: map[string]string{"old.md": "old", "x/y/z.md": "z"}},
		"a file becomes a folder": {
			placed:  map[string]string{"old.md/a.md": "a"},
			removed: []string{"old.md"},
			want:    map[string]string{"old.md/a.md": "a", "x/y/z.md": "z"},
		},
		"a folder becomes a file": {
			placed:  map[string]string{"x": "x"},
			removed: []string{"x/y/z.md"},
			want:    map[string]string{"old.md": "old", "x": "x"},
		},
		"a folder of folders": {
			placed: map[string]string{"empty": "x"},
			want:   map[string]string{"old.md": "old", "empty": "x", "x/y/z.md": "z"},
		},
		"a whole folder goes": {removed: []string{"x"}, want: map[string]string{"old.md": "old"}},
	} {
		root, staging := newBrain(t)
		write(t, staging, root, "old.md", "old")
		write(t, staging, root, "x/y/z.md", "z")
		if err := os.MkdirAll(filepath.Join(root, "empty/folder"), 0o755); err != nil {
			t.Fatal(err)
		}
		before := documentsOf(t, root)
		var placed []Content
		for path, content := range test.placed {
			placed = append(placed, Content{Location{root, path}, []byte(content)})
		}
		var removed []Location
		for _, path := range test.removed {
			removed = append(removed, Location{root, path})
		}
		p, err := Place(staging, placed, removed)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if after := documentsOf(t, root); !maps.Equal(after, test.want) {
			t.Errorf("%s: %v", name, after)
		}
		if err := p.Undo(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if undone := documentsOf(t, root); !maps.Equal(undone, before) {
			t.Errorf("%s: undone: %v", name, undone)
		}
		if left := changesIn(t, staging); len(left) != 0 {
			t.Errorf("%s: left in staging: %v", name, left)
		}
	}
}

func TestEmptyFoldersAreRemoved(t *testing.T) {
	root, staging := newBrain(t)
	write(t, staging, root, "x/a.md", "a")
	write(t, staging, root, "x/y/z/b.md", "b")
	p, err := Place(staging, nil, []Location{{root, "x/y/z/b.md"}})
	if err != nil || p.Keep() != nil {
		t.Fatal(err)
	}
	if got := contents(t, root); !maps.Equal(got, map[string]string{".": "folder", "x": "folder", "x/a.md": "a"}) {
		t.Errorf("%v", got)
	}
	if _, err := Place(staging, nil, []Location{{root, "x/a.md"}}); err != nil || !Exists(root) {
		t.Errorf("the root is gone: %v", err)
	}
}

func TestFailedPlacementLeavesNothing(t *testing.T) {
	root, staging := newBrain(t)
	write(t, staging, root, "f/bad\\name", "f")
	before := contents(t, root)
	for _, paths := range [][]string{{"x/a", "x/a/b"}, {"x/a", "f"}} {
		var placed []Content
		for _, path := range paths {
			placed = append(placed, Content{Location{root, path}, []byte("a")})
		}
		if _, err := Place(staging, placed, nil); err == nil {
			t.Errorf("%v: placed", paths)
		}
		if left := contents(t, root); !maps.Equal(left, before) {
			t.Errorf("%v: left: %v", paths, left)
		}
	}
	_, err := Place(staging, []Content{{Location{root, "f"}, nil}}, nil)
	var refused *problem.Error
	if !errors.As(err, &refused) || refused.Code != problem.Conflict {
		t.Errorf("%v", err)
	}
}
