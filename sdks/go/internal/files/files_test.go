package files

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCheckPath(t *testing.T) {
	for path, ok := range map[string]bool{
		"a.md":                            true,
		"raw/ä ö/😀.md":                    true,
		strings.Repeat("x", 250):          true,
		"...":                             true,
		"":                                false,
		".":                               false,
		"../a":                            false,
		"a/./b":                           false,
		"a//b":                            false,
		"/etc/passwd":                     false,
		"a/":                              false,
		`a\b`:                             false,
		"a\x00b":                          false,
		"a\xffb":                          false,
		strings.Repeat("x", 251):          false,
		strings.Repeat("é", 126):          false,
		strings.Repeat("xxxx/", 410):      false,
		strings.Repeat("x/", 1023) + "xx": true,
		strings.Repeat("x/", 1024) + "x":  false,
	} {
		if got := CheckPath(path) == nil; got != ok {
			t.Errorf("CheckPath(%.40q) is good: %v", path, got)
		}
	}
}

func TestIsHidden(t *testing.T) {
	for path, want := range map[string]bool{"_a": true, "x/_a.md": true, "_x/a.md": false, "a_": false} {
		if got := IsHidden(path); got != want {
			t.Errorf("IsHidden(%q) = %v", path, got)
		}
	}
}

func tree(t *testing.T, root string) map[string]string {
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

func TestAPlacementCanBeUndone(t *testing.T) {
	root, staging := t.TempDir(), t.TempDir()
	old := filepath.Join(root, "old.md")
	if err := os.WriteFile(old, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := tree(t, root)
	placed, err := Place(staging, []Content{
		{old, []byte("new")},
		{filepath.Join(root, "a/b/c.md"), []byte("c")},
		{filepath.Join(root, "a/d/e.md"), []byte("e")},
		{filepath.Join(root, "a/d/e.md"), []byte("e again")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if after := tree(t, root); after["old.md"] != "new" || after["a/d/e.md"] != "e again" {
		t.Errorf("placed: %v", after)
	}
	if err := placed.Undo(); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, root); len(after) != len(before) || after["old.md"] != "old" {
		t.Errorf("undone: %v", after)
	}
	if left := tree(t, staging); len(left) != 1 {
		t.Errorf("left in staging: %v", left)
	}
}

func TestAPlacementThatFailsLeavesNothing(t *testing.T) {
	root, staging := t.TempDir(), t.TempDir()
	_, err := Place(staging, []Content{
		{filepath.Join(root, "x/a"), []byte("a")},
		{filepath.Join(root, "x/a/b"), []byte("b")},
	})
	if err == nil {
		t.Error("a file was placed below a file")
	}
	if left := tree(t, root); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

func TestWalk(t *testing.T) {
	root := t.TempDir()
	for _, path := range []string{"a.md", "x/y/b.md", "x/bad\\name", "x/\xff"} {
		if err := os.MkdirAll(filepath.Dir(Join(root, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(Join(root, path), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(Join(root, "a.md"), Join(root, "link.md")); err != nil {
		t.Fatal(err)
	}
	var found []string
	err := Walk(t.Context(), root, func(path string, _ fs.FileInfo) error {
		found = append(found, path)
		return nil
	})
	if err != nil || !slices.Equal(found, []string{"a.md", "x/y/b.md"}) {
		t.Errorf("found %q, %v", found, err)
	}
}

func TestAStampTellsTwoWritesApart(t *testing.T) {
	root := t.TempDir()
	document, sidecar := Join(root, "a.md"), Join(root, "a.md.json")
	stamp := func() string {
		info, err := os.Stat(document)
		if err != nil {
			t.Fatal(err)
		}
		stamp, err := Stamp(info, sidecar)
		if err != nil {
			t.Fatal(err)
		}
		return stamp
	}
	place := func(target, content string) {
		placed, err := Place(root, []Content{{target, []byte(content)}})
		if err != nil {
			t.Fatal(err)
		}
		if err := placed.Keep(); err != nil {
			t.Fatal(err)
		}
	}
	place(document, "one")
	first := stamp()
	place(sidecar, "{}")
	second := stamp()
	if first == second {
		t.Error("a new sidecar changes nothing")
	}
	place(document, "two")
	if stamp() == second {
		t.Error("a new document of the same length changes nothing")
	}
}

func TestSweepSparesYoungWork(t *testing.T) {
	staging := t.TempDir()
	for name, age := range map[string]time.Duration{"old": 2 * time.Hour, "young": time.Minute} {
		folder := Join(staging, name)
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(folder, then, then); err != nil {
			t.Fatal(err)
		}
	}
	if err := Sweep(staging); err != nil {
		t.Fatal(err)
	}
	if Exists(Join(staging, "old")) || !Exists(Join(staging, "young")) {
		t.Errorf("left: %v", tree(t, staging))
	}
}
