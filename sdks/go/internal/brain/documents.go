package brain

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"memoryd/internal/files"
	"memoryd/internal/index"
	"memoryd/internal/problem"
)

// Stat describes a document, or a folder that documents lie below.
func (b *Brain) Stat(ctx context.Context, path string) (entry files.Entry, err error) {
	err = b.look(func(documents *files.Tree) error {
		kind, info, err := documents.Find(path)
		if err != nil {
			return err
		}
		there := kind == files.Regular
		if kind == files.Folder {
			if there, err = documents.HoldsDocument(ctx, path, nil); err != nil {
				return err
			}
		}
		if !there {
			return problem.New(problem.NotFound, "nothing at %q", path)
		}
		entry = files.NewEntry(path, info)
		return nil
	})
	return entry, err
}

// Open opens a document to be read, which the caller closes. Documents are replaced and never
// written in place, so that what is read is one version, whatever is committed meanwhile.
func (b *Brain) Open(path string) (document *os.File, err error) {
	err = b.look(func(documents *files.Tree) error {
		kind, _, err := documents.Find(path)
		if err == nil && kind == files.Regular {
			document, err = os.OpenFile(files.Join(b.layout.documents, path), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
		}
		if err == nil && document == nil || errors.Is(err, fs.ErrNotExist) {
			return problem.New(problem.NotFound, "no document %q", path)
		}
		return err
	})
	return document, err
}

// List lists documents and folders.
func (b *Brain) List(ctx context.Context, selection files.Selection) (entries []files.Entry, err error) {
	err = b.look(func(documents *files.Tree) error {
		entries, err = documents.List(ctx, selection)
		return err
	})
	return entries, err
}

// look lets read see the files while no change is under way.
func (b *Brain) look(read func(documents *files.Tree) error) error {
	return b.Read(func(*index.Index) error { return read(files.NewTree(b.layout.documents)) })
}
