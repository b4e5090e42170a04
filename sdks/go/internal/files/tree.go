package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// Kind is the type of file at a path.
type Kind int

const (
	Absent  Kind = iota
	Regular      // a regular file that no link leads to
	Folder
	Foreign // a link, a device, or anything behind a link
)

// Tree inspects the files below a root without following links. It caches what it sees, so that it is
// valid only as long as nobody changes the files.
type Tree struct {
	root string
	seen map[string]Kind
}

// NewTree returns the tree below root, which may be missing.
func NewTree(root string) *Tree {
	t := &Tree{root: root, seen: map[string]Kind{".": Absent}}
	// A root that is a link stays Absent, so that nothing is below it.
	if Exists(root) {
		t.seen["."] = Folder
	}
	return t
}

// Find returns what is at a canonical path now; the info is nil if nothing is there.
func (t *Tree) Find(name string) (Kind, fs.FileInfo, error) {
	kind, info, err := t.look(name)
	if err == nil {
		t.seen[name] = kind
	}
	return kind, info, err
}

func (t *Tree) look(name string) (Kind, fs.FileInfo, error) {
	parent, err := t.Kind(path.Dir(name))
	if err != nil || parent == Foreign {
		return Foreign, nil, err
	}
	if parent != Folder {
		return Absent, nil, nil
	}
	info, err := os.Lstat(filepath.Join(t.root, name))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return Absent, nil, nil
	case err != nil:
		return Absent, nil, err
	case info.Mode().IsRegular():
		return Regular, info, nil
	case info.IsDir():
		return Folder, info, nil
	}
	return Foreign, info, nil
}

// Kind returns what is at a path, as of the first call for it.
func (t *Tree) Kind(name string) (Kind, error) {
	if kind, known := t.seen[name]; known {
		return kind, nil
	}
	kind, _, err := t.Find(name)
	return kind, err
}

// Stat describes the document, or the folder that contains documents, at a path.
func (t *Tree) Stat(ctx context.Context, name string) (entry Entry, there bool, err error) {
	kind, info, err := t.Find(name)
	there = kind == Regular
	if err == nil && kind == Folder {
		there, err = t.HoldsDocument(ctx, name, nil)
	}
	if err != nil || !there {
		return entry, false, err
	}
	return NewEntry(name, info), true, nil
}

// lookAhead is how many names of a folder are read at once; usually the first is a document.
const lookAhead = 64

// HoldsDocument reports whether a folder contains a document, other than those that passOver skips.
// However deep the folders are, only one is open at a time.
func (t *Tree) HoldsDocument(ctx context.Context, folder string, passOver func(name string) bool) (bool, error) {
	pending := []string{folder}
	for len(pending) > 0 {
		last := len(pending) - 1
		folder, pending = pending[last], pending[:last]
		found, below, err := t.scan(ctx, folder, passOver)
		if err != nil || found {
			return found, err
		}
		pending = append(pending, below...)
	}
	return false, nil
}

// scan looks for a document directly in a folder, and lists its subfolders.
func (t *Tree) scan(
	ctx context.Context, folder string, passOver func(name string) bool,
) (found bool, below []string, err error) {
	handle, err := os.Open(filepath.Join(t.root, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil, nil // removed by hand after it was seen
	}
	if err != nil {
		return false, nil, err
	}
	defer func() { _ = handle.Close() }()
	for ctx.Err() == nil {
		entries, err := handle.ReadDir(lookAhead)
		if errors.Is(err, io.EOF) {
			return false, below, nil
		}
		if err != nil {
			return false, nil, err
		}
		for _, entry := range entries {
			name := path.Join(folder, entry.Name())
			switch {
			case CheckPath(name) != nil:
			case entry.IsDir():
				below = append(below, name)
			case entry.Type().IsRegular() && (passOver == nil || !passOver(name)):
				return true, nil, nil
			}
		}
	}
	return false, nil, ctx.Err()
}

// Read returns the content of a file, nil if it does not exist.
func (t *Tree) Read(name string) ([]byte, error) {
	if kind, _, err := t.Find(name); err != nil || kind != Regular {
		return nil, err
	}
	content, err := ReadRegular(filepath.Join(t.root, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}
