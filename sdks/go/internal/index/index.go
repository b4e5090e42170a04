// Package index is the search index of one brain: SQLite FTS5 for terms, a matrix for vectors. It
// is a cache of the files: an index that is damaged or of another format is deleted and rebuilt.
package index

import (
	"context"
	"database/sql"
)

// Index is safe for concurrent readers; Apply requires exclusive access.
//
// A chunk has a slot, a small integer that is its row in the vector matrix and, plus one, its rowid
// in SQLite. Freed slots are reused, so that the matrix stays dense.
type Index struct {
	db        *sql.DB
	file      string // empty if it is in memory
	madeBy    string
	documents map[string]*document
	slots     []slot
	free      []int
	vectors   matrix
	readers   int // how many can read at once
}

type document struct {
	path    string
	session *string
	tags    []string
	slots   []int
}

// slot is free if document is nil.
type slot struct {
	document *document
	ordinal  int
}

// Counts are the numbers that a brain reports.
type Counts struct {
	Documents, Chunks, Vectors int
}

// cancellable returns the context for a query, which ends when its client is gone. The driver then
// closes the connection, and the next query opens another, except in memory.
func (ix *Index) cancellable(ctx context.Context) context.Context {
	if ix.file == "" {
		return withoutCancel(ctx)
	}
	return ctx
}

// withoutCancel lets a statement run to its end. The driver closes a connection whose statement is
// interrupted, and an in-memory index would be lost with it.
func withoutCancel(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// Close closes the index; it must no longer be in use.
func (ix *Index) Close() error {
	if err := ix.db.Close(); err != nil || ix.file == "" {
		return err
	}
	return seal(ix.file)
}

// Counts returns how many documents, chunks and vectors are searchable.
func (ix *Index) Counts() Counts {
	return Counts{
		Documents: len(ix.documents),
		Chunks:    len(ix.slots) - len(ix.free),
		Vectors:   ix.vectors.count,
	}
}

// Stamps returns the stamp with which each document was indexed, by path.
func (ix *Index) Stamps(ctx context.Context) (map[string]string, error) {
	rows, err := ix.db.QueryContext(withoutCancel(ctx), "SELECT path, stamp FROM documents")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	stamps := make(map[string]string, len(ix.documents))
	for rows.Next() {
		var path, stamp string
		if err := rows.Scan(&path, &stamp); err != nil {
			return nil, err
		}
		stamps[path] = stamp
	}
	return stamps, rows.Err()
}
