package files

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// kill leaves a change as its process would that dies now, and returns the daemon that starts next.
func kill(t *testing.T, staging *Staging) *Staging {
	t.Helper()
	if err := staging.lock.Close(); err != nil {
		t.Fatal(err)
	}
	staging.lock = nil
	next, err := OpenStaging(staging.home)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = next.Close() })
	return next
}

// TestKilledChangeIsUndone kills each change when it is made; the cross-SDK tests kill it at each step.
func TestKilledChangeIsUndone(t *testing.T) {
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
		root, staging := newBrain(t)
		for path, content := range map[string]string{"a": "old a", "b": "old b", "f/g": "g", "f/h/i": "i"} {
			write(t, staging, root, path, content)
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
		if _, err := Place(staging, placed, removed); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if made := documentsOf(t, root); maps.Equal(made, before) {
			t.Errorf("%s: nothing was changed", name)
		}
		next := kill(t, staging)
		if got := documentsOf(t, root); !maps.Equal(got, before) {
			t.Errorf("%s: %q", name, got)
		}
		if left := changesIn(t, next); len(left) != 0 {
			t.Errorf("%s: left in staging: %v", name, left)
		}
	}
}

func TestRecoverySparesAChangeInProgress(t *testing.T) {
	root, staging := newBrain(t)
	write(t, staging, root, "a", "old")
	p, err := Place(staging, []Content{{Location{root, "b"}, []byte("old")}}, []Location{{root, "a"}})
	if err != nil {
		t.Fatal(err)
	}
	second, err := OpenStaging(staging.home)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(second.Close(), p.Keep()); err != nil {
		t.Fatal(err)
	}
	if got := documentsOf(t, root); !maps.Equal(got, map[string]string{"b": "old"}) {
		t.Errorf("%q", got)
	}
}

func TestFailedUndoKeepsWhatItCouldNotRestore(t *testing.T) {
	root, staging := newBrain(t)
	for path, content := range map[string]string{"a": "old a", "b": "old b", "c": "old c"} {
		write(t, staging, root, path, content)
	}
	p, err := Place(staging, []Content{{Location{root, "c"}, []byte("new c")}}, []Location{{root, "a"}, {root, "b"}})
	if err != nil {
		t.Fatal(err)
	}
	// Nothing can be moved out of a folder that is a file by now.
	aside := p.change + " aside"
	if err := errors.Join(os.Rename(p.change, aside), os.WriteFile(p.change, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	_ = p.Undo()
	if err := errors.Join(os.Remove(p.change), os.Rename(aside, p.change)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(p.change, journalName)); err != nil {
		t.Errorf("the journal of a change that is not undone: %v", err)
	}
	// What is written since is not overwritten by the next try.
	write(t, staging, root, "c", "later")
	kill(t, staging)
	if got := documentsOf(t, root); !maps.Equal(got, map[string]string{"a": "old a", "b": "old b", "c": "later"}) {
		t.Errorf("%q", got)
	}
}

func TestClosingKeepsAFailedUndoBelowAStateFolderWithBrackets(t *testing.T) {
	home := filepath.Join(t.TempDir(), "[x]")
	if err := os.MkdirAll(filepath.Join(home, "staging"), 0o755); err != nil {
		t.Fatal(err)
	}
	staging, err := OpenStaging(home)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := staging.NewFolder()
	if err != nil {
		t.Fatal(err)
	}
	journal := filepath.Join(folder, journalName)
	if err := errors.Join(os.WriteFile(journal, nil, 0o600), staging.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(journal); err != nil {
		t.Errorf("the journal of a change that is not undone: %v", err)
	}
}
