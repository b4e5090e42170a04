package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"memoryd/internal/embed"
	"memoryd/internal/problem"
	"memoryd/internal/wire"
)

// Document is a document to index.
type Document struct {
	Path     string
	Stamp    string
	Title    *string
	Tags     []string
	Metadata wire.Object
	Chunks   []string
	Vectors  []embed.Vector // one per chunk; nil without an embedder
}

// session returns metadata.session_id if it is a string, otherwise nil.
func (d Document) session() *string {
	var session *string
	if wire.Unmarshal(d.Metadata["session_id"], &session) != nil {
		return nil
	}
	return session
}

// Apply adds documents, replacing those of the same path, and removes the removed paths: all or
// nothing.
func (ix *Index) Apply(ctx context.Context, documents []Document, removed ...string) error {
	for _, doc := range documents {
		for _, vector := range doc.Vectors {
			if !ix.vectors.fits(len(vector)) {
				return problem.New(problem.BadGateway, "the embedder returned %d dimensions, the index has %d",
					len(vector), ix.vectors.dims)
			}
		}
	}
	ctx = withoutCancel(ctx)
	tx, err := ix.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := ix.applyIn(ctx, tx, documents, removed); err != nil {
		return errors.Join(fmt.Errorf("cannot change the index: %w", err), tx.Rollback(), ix.load(ctx))
	}
	return nil
}

func (ix *Index) applyIn(ctx context.Context, tx *sql.Tx, documents []Document, removed []string) error {
	c, err := ix.begin(ctx, tx)
	if err != nil {
		return err
	}
	for _, path := range removed {
		if err := c.remove(ctx, path); err != nil {
			return err
		}
	}
	for _, doc := range documents {
		if err := c.remove(ctx, doc.Path); err != nil {
			return err
		}
		if err := c.insert(ctx, doc); err != nil {
			return err
		}
	}
	return tx.Commit()
}
