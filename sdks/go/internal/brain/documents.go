package brain

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"memoryd/internal/files"
	"memoryd/internal/index"
	"memoryd/internal/problem"
)

// Stat describes a document, or a folder that contains documents.
func (b *Brain) Stat(ctx context.Context, path string) (entry files.Entry, err error) {
	err = b.readFiles(func(documents *files.Tree) error {
		var there bool
		if entry, there, err = documents.Stat(ctx, path); err == nil && !there {
			err = problem.New(problem.NotFound, "no document or folder %q", path)
		}
		return err
	})
	return entry, err
}

// Open opens a document for reading; the caller closes it. Documents are replaced, never written in
// place, so that the reader sees one version, whatever is committed meanwhile.
func (b *Brain) Open(path string) (document *os.File, err error) {
	err = b.readFiles(func(documents *files.Tree) error {
		kind, _, err := documents.Find(path)
		if err == nil && kind == files.Regular {
			document, err = files.OpenRegular(filepath.Join(b.layout.documents, path))
		}
		if err == nil && document == nil || errors.Is(err, fs.ErrNotExist) {
			return problem.New(problem.NotFound, "no document %q", path)
		}
		return err
	})
	return document, err
}

// List lists the documents and folders that match the selection.
func (b *Brain) List(ctx context.Context, selection files.Selection) (entries []files.Entry, err error) {
	err = b.readFiles(func(documents *files.Tree) error {
		entries, err = documents.List(ctx, selection)
		return err
	})
	return entries, err
}

// readFiles calls read while no change is being committed.
func (b *Brain) readFiles(read func(documents *files.Tree) error) error {
	return b.Read(func(*index.Index) error { return read(files.NewTree(b.layout.documents)) })
}
