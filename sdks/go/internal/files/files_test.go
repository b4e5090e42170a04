package files

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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

func TestWalk(t *testing.T) {
	root := t.TempDir()
	for _, path := range []string{"a.md", "x/y/b.md", "x/bad\\name", "x/\xff"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(root, "a.md"), filepath.Join(root, "link.md")); err != nil {
		t.Fatal(err)
	}
	var found []string
	err := Walk(t.Context(), root, "", func(path string, _ fs.FileInfo) error {
		found = append(found, path)
		return nil
	})
	if err != nil || !slices.Equal(found, []string{"a.md", "x/y/b.md"}) {
		t.Errorf("found %q, %v", found, err)
	}
}

func TestStampDistinguishesTwoWrites(t *testing.T) {
	root, staging := newBrain(t)
	stamp := func() string {
		look := NewTree(root)
		_, document, err := look.Find("a.md")
		if err != nil {
			t.Fatal(err)
		}
		_, sidecar, err := look.Find("a.md.json")
		if err != nil {
			t.Fatal(err)
		}
		return Stamp(document, sidecar)
	}
	write(t, staging, root, "a.md", "one")
	first := stamp()
	write(t, staging, root, "a.md.json", "{}")
	second := stamp()
	if first == second {
		t.Error("a new sidecar changes nothing")
	}
	write(t, staging, root, "a.md", "two")
	if stamp() == second {
		t.Error("a new document of the same length changes nothing")
	}
}
