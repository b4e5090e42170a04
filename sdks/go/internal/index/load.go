package index

import (
	"context"
	"database/sql"
	"errors"

	"memoryd/internal/wire"
)

// load reads into memory what searches need: the chunk of each slot, the fields of its document that
// filters use, and its vector.
func (ix *Index) load(ctx context.Context) error {
	ix.documents = map[string]*document{}
	ix.slots, ix.free = nil, nil
	ix.vectors = matrix{}
	if err := ix.loadDocuments(ctx); err != nil {
		return err
	}
	return ix.loadChunks(ctx)
}

func (ix *Index) loadDocuments(ctx context.Context) error {
	rows, err := ix.db.QueryContext(ctx, "SELECT path, session_id, tags FROM documents")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var doc document
		var tags []byte
		if err := rows.Scan(&doc.path, &doc.session, &tags); err != nil {
			return err
		}
		if err := wire.Unmarshal(tags, &doc.tags); err != nil {
			return errors.Join(errUnusable, err)
		}
		ix.documents[doc.path] = &doc
	}
	return rows.Err()
}

func (ix *Index) loadChunks(ctx context.Context) error {
	rows, err := ix.db.QueryContext(ctx, "SELECT id - 1, path, ordinal, vector FROM chunks ORDER BY id")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var number, ordinal int
		var path string
		var vector sql.RawBytes
		if err := rows.Scan(&number, &path, &ordinal, &vector); err != nil {
			return err
		}
		doc := ix.documents[path]
		if doc == nil {
			return errUnusable
		}
		for len(ix.slots) < number {
			ix.free = append(ix.free, len(ix.slots))
			ix.slots = append(ix.slots, slot{})
		}
		doc.slots = append(doc.slots, number)
		ix.slots = append(ix.slots, slot{document: doc, ordinal: ordinal})
		if vector != nil {
			ix.vectors.put(number, decodeVector(vector))
		}
	}
	return rows.Err()
}
