package brain

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"slices"

	"memoryd/internal/files"
	"memoryd/internal/index"
)

// reconcileBatch is how many documents are read, embedded and indexed at once.
const reconcileBatch = 256

type stamped struct{ path, stamp string }

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
		for batch := range slices.Chunk(changed, reconcileBatch) {
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
	err = files.Walk(ctx, b.layout.documents, func(path string, info fs.FileInfo) error {
		if files.IsHidden(path) {
			return nil
		}
		stamp, err := files.Stamp(info, b.layout.sidecar(path))
		if err != nil {
			return err
		}
		if known[path] != stamp {
			changed = append(changed, stamped{path, stamp})
		}
		delete(known, path)
		return nil
	})
	return changed, slices.Collect(maps.Keys(known)), err
}

func (b *Brain) reindex(ctx context.Context, ix *index.Index, batch []stamped) error {
	documents := make([]index.Document, len(batch))
	for i, found := range batch {
		content, err := os.ReadFile(b.layout.document(found.path))
		if err != nil {
			return err
		}
		sidecar, err := readSidecar(b.layout.sidecar(found.path))
		if err != nil {
			return err
		}
		if documents[i], err = understand(found.path, content, sidecar); err != nil {
			return err
		}
		documents[i].Stamp = found.stamp
	}
	if err := b.embed(ctx, documents); err != nil {
		return err
	}
	return ix.Apply(ctx, documents)
}
