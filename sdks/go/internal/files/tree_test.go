package files

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func linked(t *testing.T, root string) {
	t.Helper()
	outside := t.TempDir()
	plant(t, outside, "secret/a.md", "secret")
	for name, target := range map[string]string{
		"link": outside, "inner": "folder", "link.md": filepath.Join(outside, "secret/a.md"), "loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "folder/a.md", "a")
	linked(t, root)
	for path, want := range map[string]Kind{
		"folder": Folder, "folder/a.md": Regular, "folder/no.md": Absent, "folder/a.md/no": Absent, "no/no": Absent,
		"link": Foreign, "link/secret": Foreign, "link/secret/a.md": Foreign, "link.md": Foreign,
		"inner/a.md": Foreign, "loop/a.md": Foreign,
	} {
		tree := NewTree(root)
		for range 2 { // the second time from memory
			if got, _, err := tree.Find(path); err != nil || got != want {
				t.Errorf("Find(%s) = %d, %v", path, got, err)
			}
			if got, err := tree.Kind(path); err != nil || got != want {
				t.Errorf("Kind(%s) = %d, %v", path, got, err)
			}
		}
		content, err := tree.Read(path)
		if err != nil || (content != nil) != (want == Regular) {
			t.Errorf("Read(%s) = %q, %v", path, content, err)
		}
	}
}

func TestList(t *testing.T) {
	began := time.Now().Truncate(time.Second) // a file system's clock may be a little behind
	root := t.TempDir()
	for _, path := range []string{
		"b.md", "a-b", "a/b.md", "a/c/d.md", "_h.md", "_g/e.md", "only/_hidden.md", "bad\\name", "é", "\uFFFF", "𝔸",
	} {
		plant(t, root, path, "12345")
	}
	linked(t, root)
	if err := os.Mkdir(filepath.Join(root, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	glob := NewGlob
	for name, test := range map[string]struct {
		selection Selection
		want      string
	}{
		"root":             {Selection{}, "a/ a-b b.md only/ é \uFFFF 𝔸"},
		"hidden too":       {Selection{Hidden: true}, "_g/ _h.md a/ a-b b.md only/ é \uFFFF 𝔸"},
		"all":              {Selection{Recursive: true}, "_g/e.md a-b a/b.md a/c/d.md b.md é \uFFFF 𝔸"},
		"all, hidden too":  {Selection{Recursive: true, Hidden: true}, "_g/e.md _h.md a-b a/b.md a/c/d.md b.md only/_hidden.md é \uFFFF 𝔸"},
		"folder":           {Selection{Folder: "a"}, "a/b.md a/c/"},
		"folder, all":      {Selection{Folder: "a", Recursive: true}, "a/b.md a/c/d.md"},
		"hidden folder":    {Selection{Folder: "_g"}, "_g/e.md"},
		"document":         {Selection{Folder: "b.md", Recursive: true}, ""},
		"nothing":          {Selection{Folder: "no/no"}, ""},
		"link":             {Selection{Folder: "link", Recursive: true}, ""},
		"no document":      {Selection{Folder: "empty"}, ""},
		"glob":             {Selection{Glob: glob("a*")}, "a/ a-b"},
		"glob, base names": {Selection{Recursive: true, Glob: glob("?.md")}, "_g/e.md a/b.md a/c/d.md b.md"},
		"empty glob":       {Selection{Glob: glob("")}, ""},
	} {
		entries, err := NewTree(root).List(t.Context(), test.selection)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, entry := range entries {
			label, size := entry.Path, int64(5)
			if entry.IsFolder {
				label, size = entry.Path+"/", 0
			}
			got = append(got, label)
			if entry.Size != size || entry.Modified.Before(began) || entry.Modified.After(time.Now()) {
				t.Errorf("%s: %+v", name, entry)
			}
		}
		if !slices.Equal(got, strings.Fields(test.want)) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "a.md", true}, {"*", "", true}, {"", "", true}, {"", "a", false}, {"?", "😀", true}, {"?", "", false},
		{"*.md", "a.md", true}, {"*.md", "a.mdx", false}, {"a*b*c", "a1b2bc", true}, {"a*b*c", "acb", false},
		{"[a]", "a", false}, {"[a]", "[a]", true}, {"{a,b}", "a", false}, {"a.c", "abc", false}, {"\\*", "\\x", true},
		{"A", "a", false}, {"**a**", "xax", true},
		{strings.Repeat("*a", 120) + "*b", strings.Repeat("a", 250), false},
		{strings.Repeat("*", 9000) + "a", "xa", true}, {strings.Repeat("*?", 250), strings.Repeat("a", 250), true},
		{strings.Repeat("a", 250) + "*", strings.Repeat("a", 250), true}, {strings.Repeat("a", 251), strings.Repeat("a", 250), false},
	} {
		if got := NewGlob(test.pattern).Match(test.name); got != test.want {
			t.Errorf("%.20q fits %.20q: %v", test.pattern, test.name, got)
		}
	}
}

func TestOnlyOneDeepFolderIsOpenAtATime(t *testing.T) {
	root := t.TempDir()
	deep := strings.Repeat("x/", 900) + "a.md"
	plant(t, root, deep, "a")
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	few := before
	few.Cur = 200
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) }()
	for want, passOver := range map[bool]func(string) bool{true: nil, false: func(name string) bool { return name == deep }} {
		if found, err := NewTree(root).HoldsDocument(t.Context(), "x", passOver); err != nil || found != want {
			t.Errorf("%v, %v", found, err)
		}
	}
}

// plant writes a file as somebody other than a daemon would.
func plant(t *testing.T, root, path, content string) {
	t.Helper()
	file := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
