package files

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"memoryd/internal/moment"
)

// Entry is a document, or a folder that contains documents.
type Entry struct {
	Path     string    `json:"path"`
	Size     int64     `json:"size"`  // 0 for a folder
	Modified time.Time `json:"mtime"` // bounded, for files may have times that RFC 3339 cannot express
	IsFolder bool      `json:"is_dir"`
}

// NewEntry describes the file or folder at a path.
func NewEntry(name string, info fs.FileInfo) Entry {
	entry := Entry{Path: name, Modified: moment.Bound(info.ModTime()), IsFolder: info.IsDir()}
	if !entry.IsFolder {
		entry.Size = info.Size()
	}
	return entry
}

// Selection says what a listing contains.
type Selection struct {
	Folder    string // a canonical path, or empty
	Recursive bool   // all documents below, instead of the folder's direct entries
	Hidden    bool   // include hidden documents and folders
	Glob      Glob   // nil matches every base name
}

func (s Selection) has(name string) bool {
	return (s.Hidden || !IsHidden(name)) && (s.Glob == nil || s.Glob.Match(path.Base(name)))
}

// List returns the selected entries, sorted by the bytes of their paths.
func (t *Tree) List(ctx context.Context, s Selection) ([]Entry, error) {
	entries := []Entry{}
	if s.Folder != "" {
		if kind, _, err := t.Find(s.Folder); err != nil || kind != Folder {
			return entries, err
		}
	}
	list := t.listFolder
	if s.Recursive {
		list = t.listBelow
	}
	err := list(ctx, s, func(entry Entry) { entries = append(entries, entry) })
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	return entries, err
}

func (t *Tree) listBelow(ctx context.Context, s Selection, add func(Entry)) error {
	return Walk(ctx, t.root, s.Folder, func(name string, info fs.FileInfo) error {
		if s.has(name) {
			add(NewEntry(name, info))
		}
		return nil
	})
}

func (t *Tree) listFolder(ctx context.Context, s Selection, add func(Entry)) error {
	dirEntries, err := os.ReadDir(filepath.Join(t.root, s.Folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range dirEntries {
		name := strings.TrimPrefix(s.Folder+"/"+entry.Name(), "/")
		if CheckPath(name) != nil || !s.has(name) {
			continue
		}
		entry, there, err := t.Stat(ctx, name)
		if err != nil {
			return err
		}
		if there {
			add(entry)
		}
	}
	return nil
}
