package brain

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"

	"memoryd/internal/files"
	"memoryd/internal/index"
)

// So many documents, or bytes of them, are read, embedded and indexed at once: a daemon that is to
// stop waits for one batch.
const (
	reconcileDocuments = 256
	reconcileBytes     = 1 << 20
)

type stamped struct {
	path, stamp string
	size        int64
}

// batches cuts the documents into runs that are small enough; one that is too large is its own.
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

// reconcile brings the index to what the files say. What was done before a failure stays.
func (b *Brain) reconcile(ctx context.Context) error {
	return b.write(func(ix *index.Index) error {
		changed, removed, err := b.differences(ctx, ix)
		if err != nil {
			return err
		}
		if len(removed) > 0 {
			if err := ix.Apply(ctx, nil, removed...); err != nil {
				return err
			}
		}
		for batch := range batches(changed) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := b.reindex(ctx, ix, batch); err != nil {
				return err
			}
		}
		b.upToDate.Store(true)
		return nil
	})
}

func (b *Brain) differences(ctx context.Context, ix *index.Index) (changed []stamped, removed []string, err error) {
	known, err := ix.Stamps(ctx)
	if err != nil {
		return nil, nil, err
	}
	sidecars := files.NewTree(b.layout.sidecars)
	err = files.Walk(ctx, b.layout.documents, "", func(path string, info fs.FileInfo) error {
		if files.IsHidden(path) {
			return nil
		}
		stamp, err := stampBeside(sidecars, path, info)
		if err != nil {
			return err
		}
		if known[path] != stamp {
			changed = append(changed, stamped{path, stamp, info.Size()})
		}
		delete(known, path)
		return nil
	})
	return changed, slices.Collect(maps.Keys(known)), err
}

func (b *Brain) reindex(ctx context.Context, ix *index.Index, batch []stamped) error {
	sidecars := files.NewTree(b.layout.sidecars)
	documents := make([]index.Document, 0, len(batch))
	for _, found := range batch {
		content, err := os.ReadFile(files.Join(b.layout.documents, found.path))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted since the folders were walked
		}
		if err != nil {
			return err
		}
		sidecar, err := sidecars.Read(sidecarOf(found.path))
		if err != nil {
			return err
		}
		document, err := understand(found.path, content, parseSidecar(sidecar))
		if err != nil {
			return err
		}
		document.Stamp = found.stamp
		documents = append(documents, document)
	}
	if b.embedder != nil {
		known := vectors{}
		if err := known.learn(ctx, b.embedder, known.lacking(documents)); err != nil {
			return err
		}
		known.give(documents)
	}
	return ix.Apply(ctx, documents)
}

// stampBeside is the stamp of a document with what lies beside it now.
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
