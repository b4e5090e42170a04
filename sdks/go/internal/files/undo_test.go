package files

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// staged returns a change that has been staged but not placed.
func staged(t *testing.T, staging, root string, placed map[string]string, removed ...string) *Placement {
	t.Helper()
	work, err := NewWork(staging, "change")
	if err != nil {
		t.Fatal(err)
	}
	p := &Placement{work: work}
	var contents []Content
	for path, content := range placed {
		contents = append(contents, Content{Location{root, path}, []byte(content)})
	}
	for _, path := range removed {
		p.removed = append(p.removed, Location{root, path})
	}
	if err := p.stage(staging, contents); err != nil {
		t.Fatal(err)
	}
	return p
}

// expectRecovered simulates the death of a change's process and recovers the change.
func expectRecovered(t *testing.T, name string, p *Placement, root string, want map[string]string) {
	t.Helper()
	staging := filepath.Dir(p.work)
	if err := errors.Join(p.journal.close(), Sweep(staging)); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if got := documentsOf(t, root); !maps.Equal(got, want) {
		t.Errorf("%s: %q", name, got)
	}
	if left, _ := os.ReadDir(staging); len(left) != 0 {
		t.Errorf("%s: left in staging: %v", name, left)
	}
}

// TestInterruptedChangeIsUndone interrupts each change after none, some and all of its files.
func TestInterruptedChangeIsUndone(t *testing.T) {
	for name, test := range map[string]struct {
		placed  map[string]string
		removed []string
	}{
		"swapped":                      {map[string]string{"a": "old b", "b": "old a"}, nil},
		"renamed":                      {map[string]string{"c/d": "old a"}, []string{"a"}},
		"renamed over":                 {map[string]string{"b": "old a"}, []string{"a"}},
		"a file becomes a folder":      {map[string]string{"a/x/y": "old a"}, []string{"a"}},
		"a folder becomes a file":      {map[string]string{"f": "g"}, []string{"f/g", "f/h/i"}},
		"a folder goes, and one of it": {map[string]string{"n": "n"}, []string{"f/g", "f"}},
	} {
		for done := range len(test.placed) + len(test.removed) + 1 {
			root := t.TempDir()
			for path, content := range map[string]string{"a": "old a", "b": "old b", "f/g": "g", "f/h/i": "i"} {
				write(t, root, path, content)
			}
			before := documentsOf(t, root)
			p := staged(t, t.TempDir(), root, test.placed, test.removed...)
			p.placed, p.removed = p.placed[:min(done, len(p.placed))], p.removed[:max(0, done-len(p.placed))]
			_ = p.place() // some of a change may have less room than all of it
			expectRecovered(t, name+" "+strconv.Itoa(done), p, root, before)
		}
	}
}

func TestUnusedFolderIsNotInTheWay(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "old a")
	before := documentsOf(t, root)
	p := staged(t, t.TempDir(), root, map[string]string{"a/b/c": "old a"}, "a")
	if err := errors.Join(p.remove(0, p.removed[0]), os.MkdirAll(Join(root, "a/b"), 0o755)); err != nil {
		t.Fatal(err)
	}
	expectRecovered(t, "killed", p, root, before)
}

func TestSweepSparesAChangeInProgress(t *testing.T) {
	root, staging := t.TempDir(), t.TempDir()
	write(t, root, "a", "old")
	p, err := Place(staging, []Content{{Location{root, "b"}, []byte("old")}}, []Location{{root, "a"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := Sweep(staging); err != nil {
		t.Fatal(err)
	}
	if err := p.Keep(); err != nil {
		t.Fatal(err)
	}
	if got := documentsOf(t, root); !maps.Equal(got, map[string]string{"b": "old"}) {
		t.Errorf("%q", got)
	}
}

func TestFailedUndoKeepsWhatItCouldNotRestore(t *testing.T) {
	root, staging := t.TempDir(), t.TempDir()
	for path, content := range map[string]string{"a": "old a", "b": "old b", "c": "old c"} {
		write(t, root, path, content)
	}
	p, err := Place(staging, []Content{{Location{root, "c"}, []byte("new c")}}, []Location{{root, "a"}, {root, "b"}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, root, "b/in the way", "x")
	if err := p.Undo(); err == nil {
		t.Error("undone")
	}
	if got := documentsOf(t, root); !maps.Equal(got, map[string]string{"a": "old a", "b/in the way": "x", "c": "old c"}) {
		t.Errorf("%q", got)
	}
	// What is written since is not overwritten by the next try.
	write(t, root, "c", "later")
	if err := os.RemoveAll(filepath.Join(root, "b")); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(staging); err != nil {
		t.Fatal(err)
	}
	if got := documentsOf(t, root); !maps.Equal(got, map[string]string{"a": "old a", "b": "old b", "c": "later"}) {
		t.Errorf("%q", got)
	}
	if left, _ := os.ReadDir(staging); len(left) != 0 {
		t.Errorf("left in staging: %v", left)
	}
}
