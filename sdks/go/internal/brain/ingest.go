package brain

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"memoryd/internal/files"
	"memoryd/internal/index"
	"memoryd/internal/problem"
	"memoryd/internal/wire"
)

// NewDocument is a document to be stored; its path is canonical.
type NewDocument struct {
	Path    string
	Content []byte
	Sidecar Sidecar
}

// Ingest stores and indexes all documents, or none of them, and returns how many chunks each has.
func (b *Brain) Ingest(ctx context.Context, documents []NewDocument) ([]int, error) {
	indexed := make([]index.Document, len(documents))
	for i, doc := range documents {
		var err error
		if indexed[i], err = understand(doc.Path, doc.Content, doc.Sidecar); err != nil {
			return nil, err
		}
	}
	if err := b.embed(ctx, indexed); err != nil {
		return nil, err
	}
	contents, err := b.contents(documents)
	if err != nil {
		return nil, err
	}
	err = b.write(func(ix *index.Index) error {
		if err := b.refuseConflicts(documents); err != nil {
			return err
		}
		placed, err := files.Place(b.layout.staging, contents)
		if err != nil {
			return err
		}
		if err := b.take(ctx, ix, indexed); err != nil {
			return errors.Join(err, placed.Undo())
		}
		return placed.Keep()
	})
	if err != nil {
		return nil, err
	}
	chunks := make([]int, len(documents))
	for i, doc := range indexed {
		chunks[i] = len(doc.Chunks)
	}
	return chunks, nil
}

func (b *Brain) contents(documents []NewDocument) ([]files.Content, error) {
	contents := make([]files.Content, 0, 2*len(documents))
	for _, doc := range documents {
		sidecar, err := wire.Marshal(doc.Sidecar)
		if err != nil {
			return nil, err
		}
		contents = append(contents,
			files.Content{Target: b.layout.sidecar(doc.Path), Bytes: sidecar},
			files.Content{Target: b.layout.document(doc.Path), Bytes: doc.Content})
	}
	return contents, nil
}

// take indexes documents whose files are in their places.
func (b *Brain) take(ctx context.Context, ix *index.Index, documents []index.Document) error {
	var visible []index.Document
	for _, doc := range documents {
		if files.IsHidden(doc.Path) {
			continue
		}
		info, err := os.Stat(b.layout.document(doc.Path))
		if err != nil {
			return err
		}
		if doc.Stamp, err = files.Stamp(info, b.layout.sidecar(doc.Path)); err != nil {
			return err
		}
		visible = append(visible, doc)
	}
	return ix.Apply(ctx, visible)
}

// refuseConflicts refuses paths that would be file and folder at once, inside the batch or with
// what is stored, by themselves or by the places of their sidecars.
func (b *Brain) refuseConflicts(documents []NewDocument) error {
	taken := make(map[string]bool, 2*len(documents))
	for _, doc := range documents {
		taken[doc.Path] = true
		// The sidecar of `a` is `a.json`, where `a.json/b` would need a folder.
		taken[doc.Path+".json"] = true
	}
	for _, doc := range documents {
		for folder := path.Dir(doc.Path); folder != "."; folder = path.Dir(folder) {
			if taken[folder] {
				return problem.New(problem.Conflict, "%q: another document of the batch is its folder", doc.Path)
			}
		}
		for _, target := range []string{b.layout.document(doc.Path), b.layout.sidecar(doc.Path)} {
			if err := refuseConflict(doc.Path, target); err != nil {
				return err
			}
		}
	}
	return nil
}

func refuseConflict(path, target string) error {
	if files.Exists(target) {
		return problem.New(problem.Conflict, "%q is a folder", path)
	}
	for folder := filepath.Dir(target); !files.Exists(folder); folder = filepath.Dir(folder) {
		if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return problem.New(problem.Conflict, "a folder of %q is a document", path)
		}
	}
	return nil
}
