package brain

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"path/filepath"
	"slices"

	"memoryd/internal/files"
	"memoryd/internal/index"
)

// Limits of a batch that is read, embedded and indexed at once. A stopping daemon waits for one
// batch.
const (
	reconcileDocuments = 256
	reconcileBytes     = 1 << 20
)

type stamped struct {
	path, stamp string
	size        int64
}

// batches splits the documents into batches within the limits; a larger document is its own batch.
func batches(changed []stamped) iter.Seq[[]stamped] {
	return func(yield func([]stamped) bool) {
		for start := 0; start < len(changed); {
			end, size := start+1, changed[start].size
			for end < len(changed) && end-start < reconcileDocuments && size+changed[end].size <= reconcileBytes {
				size += changed[end].size
				end++
			}
			if !yield(changed[start:end]) {
				return
			}
			start = end
		}
	}
}

// reconcile updates the index to match the files, and keeps the batches indexed before a failure. The
// brain is locked only to compare and to apply, so that nobody waits for the embedder; what others
// changed meanwhile is left to the next comparison.
func (b *Brain) reconcile(ctx context.Context) error {
	for {
		var changed []stamped
		err := b.write(func(ix *index.Index) error {
			var removed []string
			var err error
			if changed, removed, err = b.differences(ctx, ix); err != nil {
				return err
			}
			if len(removed) > 0 {
				if err := ix.Apply(nil, removed...); err != nil {
					return err
				}
			}
			b.upToDate.Store(len(changed) == 0)
			return nil
		})
		if err != nil || len(changed) == 0 {
			return err
		}
		for batch := range batches(changed) {
			if err := ctx.Err(); err != nil {
				return err
			}
			documents, err := b.prepare(ctx, batch)
			if err != nil {
				return err
			}
			err = b.write(func(ix *index.Index) error { return b.applyUnchanged(ix, documents) })
			if err != nil {
				return err
			}
		}
	}
}

func (b *Brain) differences(ctx context.Context, ix *index.Index) (changed []stamped, removed []string, err error) {
	cache := ix.Stamps()
	sidecars := files.NewTree(b.layout.sidecars)
	err = files.Walk(ctx, b.layout.documents, "", func(path string, info fs.FileInfo) error {
		if files.IsHidden(path) {
			return nil
		}
		stamp, err := stampBeside(sidecars, path, info)
		if err != nil {
			return err
		}
		if cache[path] != stamp {
			changed = append(changed, stamped{path, stamp, info.Size()})
		}
		delete(cache, path)
		return nil
	})
	return changed, slices.Collect(maps.Keys(cache)), err
}

// prepare reads and embeds a batch.
func (b *Brain) prepare(ctx context.Context, batch []stamped) ([]index.Document, error) {
	sidecars := files.NewTree(b.layout.sidecars)
	documents := make([]index.Document, 0, len(batch))
	for _, file := range batch {
		content, err := files.ReadRegular(filepath.Join(b.layout.documents, file.path))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted after the folders were walked
		}
		if err != nil {
			return nil, err
		}
		sidecar, err := sidecars.Read(sidecarOf(file.path))
		if err != nil {
			return nil, err
		}
		document, err := parseDocument(file.path, content, parseSidecar(sidecar))
		if err != nil {
			return nil, err
		}
		document.Stamp = file.stamp
		documents = append(documents, document)
	}
	if b.embedder != nil {
		cache := vectors{}
		if err := cache.embed(ctx, b.embedder, cache.missing(documents)); err != nil {
			return nil, err
		}
		cache.assign(documents)
	}
	return documents, nil
}

// applyUnchanged indexes the documents whose files are still those that were read.
func (b *Brain) applyUnchanged(ix *index.Index, documents []index.Document) error {
	stored, sidecars := files.NewTree(b.layout.documents), files.NewTree(b.layout.sidecars)
	var unchanged []index.Document
	for _, document := range documents {
		kind, info, err := stored.Find(document.Path)
		if err != nil {
			return err
		}
		if kind != files.Regular {
			continue
		}
		stamp, err := stampBeside(sidecars, document.Path, info)
		if err != nil {
			return err
		}
		if stamp == document.Stamp {
			unchanged = append(unchanged, document)
		}
	}
	return ix.Apply(unchanged)
}

// stampBeside returns the stamp of a document together with its current sidecar.
func stampBeside(sidecars *files.Tree, path string, document fs.FileInfo) (string, error) {
	kind, sidecar, err := sidecars.Find(sidecarOf(path))
	if err != nil {
		return "", err
	}
	if kind != files.Regular {
		sidecar = nil
	}
	return files.Stamp(document, sidecar), nil
}
