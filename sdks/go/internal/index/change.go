package index

import (
	"context"
	"database/sql"

	"memoryd/internal/text"
	"memoryd/internal/wire"
)

// change updates rows and memory together, within one transaction.
type change struct {
	ix *Index

	insertDocument, deleteDocument *sql.Stmt
	insertChunk, deleteChunk       *sql.Stmt
	insertTerms, deleteTerms       *sql.Stmt
}

func (ix *Index) begin(ctx context.Context, tx *sql.Tx) (*change, error) {
	c := &change{ix: ix}
	for _, prepared := range []struct {
		statement **sql.Stmt
		query     string
	}{
		{&c.insertDocument, "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)"},
		{&c.deleteDocument, "DELETE FROM documents WHERE path = ?"},
		{&c.insertChunk, "INSERT INTO chunks VALUES (?, ?, ?, ?, ?)"},
		{&c.deleteChunk, "DELETE FROM chunks WHERE id = ? RETURNING text"},
		{&c.insertTerms, "INSERT INTO chunk_terms(rowid, text) VALUES (?, ?)"},
		{&c.deleteTerms, "INSERT INTO chunk_terms(chunk_terms, rowid, text) VALUES ('delete', ?, ?)"},
	} {
		// The transaction closes the statements that it prepared.
		statement, err := tx.PrepareContext(ctx, prepared.query)
		if err != nil {
			return nil, err
		}
		*prepared.statement = statement
	}
	return c, nil
}

func (c *change) remove(ctx context.Context, path string) error {
	doc := c.ix.documents[path]
	if doc == nil {
		return nil
	}
	for _, number := range doc.slots {
		var chunk string
		if err := c.deleteChunk.QueryRowContext(ctx, number+1).Scan(&chunk); err != nil {
			return err
		}
		if _, err := c.deleteTerms.ExecContext(ctx, number+1, text.NFKC(chunk)); err != nil {
			return err
		}
		c.ix.release(number)
	}
	delete(c.ix.documents, path)
	_, err := c.deleteDocument.ExecContext(ctx, path)
	return err
}

func (c *change) insert(ctx context.Context, doc Document) error {
	tags, err := wire.Marshal(doc.Tags)
	if err != nil {
		return err
	}
	metadata, err := wire.Marshal(doc.Metadata)
	if err != nil {
		return err
	}
	known := &document{path: doc.Path, session: doc.session(), tags: doc.Tags}
	saved := savedDocument{
		path: doc.Path, stamp: doc.Stamp, title: doc.Title, session: known.session,
		tags: string(tags), metadata: string(metadata),
	}
	chunks := make([]savedChunk, len(doc.Chunks))
	for ordinal, chunk := range doc.Chunks {
		chunks[ordinal].text = chunk
		if doc.Vectors != nil {
			chunks[ordinal].vector = encodeVector(doc.Vectors[ordinal])
		}
	}
	_, err = c.insertDocument.ExecContext(ctx,
		doc.Path, doc.Stamp, doc.Title, known.session, saved.tags, saved.metadata, saved.sum(c.ix.madeBy, chunks))
	if err != nil {
		return err
	}
	c.ix.documents[doc.Path] = known
	for ordinal, chunk := range doc.Chunks {
		number := c.ix.take(known, ordinal)
		if doc.Vectors != nil {
			c.ix.vectors.put(number, doc.Vectors[ordinal])
		}
		if _, err := c.insertChunk.ExecContext(ctx, number+1, doc.Path, ordinal, chunk, chunks[ordinal].vector); err != nil {
			return err
		}
		if _, err := c.insertTerms.ExecContext(ctx, number+1, text.NFKC(chunk)); err != nil {
			return err
		}
	}
	return nil
}

func (ix *Index) take(doc *document, ordinal int) int {
	number := len(ix.slots)
	if last := len(ix.free) - 1; last >= 0 {
		number = ix.free[last]
		ix.free = ix.free[:last]
	} else {
		ix.slots = append(ix.slots, slot{})
	}
	ix.slots[number] = slot{document: doc, ordinal: ordinal}
	doc.slots = append(doc.slots, number)
	return number
}

func (ix *Index) release(number int) {
	ix.slots[number] = slot{}
	ix.free = append(ix.free, number)
	ix.vectors.drop()
}
