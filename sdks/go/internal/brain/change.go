package brain

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"memoryd/internal/files"
	"memoryd/internal/index"
)

// Change applies all operations in order, or none. Its error may be a *Refusal; reason may be nil.
func (b *Brain) Change(ctx context.Context, operations []Operation, reason *string) error {
	_, err := b.change(ctx, operations, reason)
	return err
}

// change embeds without holding a lock: it drafts the operations, embeds the texts, and drafts
// again under the lock to commit. If a concurrent change left a text without its vector, it starts
// over; that is not livelock, because the other change has been committed.
func (b *Brain) change(ctx context.Context, operations []Operation, reason *string) ([]index.Document, error) {
	cache := vectors{}
	for {
		var documents []index.Document
		var missing []string
		err := b.write(func(ix *index.Index) error {
			d, err := b.draft(ctx, operations)
			if err != nil {
				return err
			}
			if documents, err = d.changedDocuments(); err != nil {
				return err
			}
			if b.embedder != nil {
				if missing = cache.missing(documents); len(missing) > 0 {
					return nil
				}
				cache.assign(documents)
			}
			return b.commit(ctx, ix, d, documents, reason)
		})
		if err != nil || len(missing) == 0 {
			return documents, err
		}
		if err := cache.embed(ctx, b.embedder, missing); err != nil {
			return nil, err
		}
	}
}

// changedDocuments returns the documents that the draft creates or changes, ready for the index.
func (d *draft) changedDocuments() ([]index.Document, error) {
	var documents []index.Document
	for _, name := range slices.Sorted(maps.Keys(d.entries)) {
		e := d.entries[name]
		if !e.there || !e.content.changed && !e.sidecar.changed {
			continue
		}
		content, err := e.content.get()
		if err != nil {
			return nil, err
		}
		sidecar, err := e.sidecar.get()
		if err != nil {
			return nil, err
		}
		document, err := parseDocument(name, content, parseSidecar(sidecar))
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
	return documents, nil
}

func (b *Brain) commit(
	ctx context.Context, ix *index.Index, d *draft, documents []index.Document, reason *string,
) error {
	contents, removed, err := b.effect(d)
	if err != nil {
		return err
	}
	if err := files.MakeFolder(b.layout.sidecars); err != nil {
		return err
	}
	placed, err := files.Place(b.staging, contents, removed)
	if err != nil {
		return err
	}
	if err := b.keep(ctx, ix, d, documents, placed); err != nil {
		return err
	}
	for i := range d.changes {
		d.changes[i].Reason = reason
	}
	// Publishing nothing would end the streams that have many changes waiting.
	if len(d.changes) > 0 {
		b.feed.Publish(d.changes)
	}
	return nil
}

// keep indexes what is placed and commits it, or undoes it.
func (b *Brain) keep(
	ctx context.Context, ix *index.Index, d *draft, documents []index.Document, placed *files.Placement,
) error {
	err := b.updateIndex(ctx, ix, d, documents)
	indexed := err == nil
	if indexed {
		err = placed.Keep()
	}
	if err == nil {
		return nil
	}
	undoErr := placed.Undo()
	if indexed || undoErr != nil {
		b.upToDate.Store(false) // the index contains what was undone, or lacks what was not
	}
	return errors.Join(err, undoErr)
}

// updateIndex applies the draft to the index, after the files are in place.
func (b *Brain) updateIndex(ctx context.Context, ix *index.Index, d *draft, documents []index.Document) error {
	stored, sidecars := files.NewTree(b.layout.documents), files.NewTree(b.layout.sidecars)
	var visible []index.Document
	for _, document := range documents {
		if files.IsHidden(document.Path) {
			continue
		}
		kind, info, err := stored.Find(document.Path)
		if err == nil && kind != files.Regular {
			err = fs.ErrNotExist // removed by hand after it was placed
		}
		if err != nil {
			return err
		}
		if document.Stamp, err = stampBeside(sidecars, document.Path, info); err != nil {
			return err
		}
		visible = append(visible, document)
	}
	var removed []string
	for name, e := range d.entries {
		if e.stored && !e.there {
			removed = append(removed, name)
		}
	}
	return ix.Apply(visible, removed...)
}
