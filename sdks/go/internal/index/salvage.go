package index

import (
	"context"
	"database/sql"
	"errors"
	"os"

	"memoryd/internal/text"
)

// restore makes sure that everything in the file is as it was written. It copies the documents of a
// file that is not sealed to a new one, as long as the checksum that each was indexed with is right.
// The rest is indexed again from the files, as is everything if the file cannot be read at all.
func restore(ctx context.Context, file, madeBy string) error {
	sealed, err := breakSeal(file)
	if err != nil || sealed {
		return err
	}
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	fresh := file + ".new"
	if err := Remove(fresh); err != nil {
		return err
	}
	if err := salvage(ctx, file, fresh, madeBy); err != nil {
		return err
	}
	if err := Remove(file); err != nil {
		return err
	}
	return os.Rename(fresh, file)
}

// salvage writes the intact documents of the file to a new index. It fails only if that fails.
func salvage(ctx context.Context, file, fresh, madeBy string) (err error) {
	target, err := sql.Open("sqlite", source(fresh))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if err := prepareSchema(ctx, target, madeBy); err != nil {
		return err
	}
	tx, err := target.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	s := &salvaging{tx: tx, madeBy: madeBy}
	if err := s.copyFrom(ctx, file); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

type salvaging struct {
	tx     *sql.Tx
	madeBy string
	chunks int
}

// savedDocument is a row of documents as it was stored.
type savedDocument struct {
	path, stamp, tags, metadata, checksum string
	title, session                        *string
}

type savedChunk struct {
	text   string
	vector []byte
}

// copyFrom copies what it can read; errors of the damaged file end the copying of one or all documents.
func (s *salvaging) copyFrom(ctx context.Context, file string) error {
	old, err := sql.Open("sqlite", source(file))
	if err != nil {
		return err
	}
	defer func() { _ = old.Close() }()
	rows, err := old.QueryContext(ctx,
		"SELECT path, stamp, title, session_id, tags, metadata, checksum FROM documents ORDER BY path")
	if err != nil {
		return nil //nolint:nilerr // nothing can be salvaged
	}
	defer func() { _ = rows.Close() }()
	stored, err := old.QueryContext(ctx, "SELECT path, text, vector FROM chunks ORDER BY path, ordinal")
	if err != nil {
		return nil //nolint:nilerr // nothing can be salvaged
	}
	defer func() { _ = stored.Close() }()
	following := chunkReader{rows: stored}
	for rows.Next() {
		var doc savedDocument
		err := rows.Scan(&doc.path, &doc.stamp, &doc.title, &doc.session, &doc.tags, &doc.metadata, &doc.checksum)
		if err != nil {
			continue
		}
		chunks := following.of(doc.path)
		if doc.checksum != doc.sum(s.madeBy, chunks) {
			continue
		}
		if err := s.add(ctx, doc, chunks); err != nil {
			return err
		}
	}
	return nil
}

// chunkReader reads the chunks of one document after the other, in the order of their paths.
type chunkReader struct {
	rows *sql.Rows
	path string
	next *savedChunk // the first of the next document, which has this path
}

// of returns the chunks of a document; without some of them if they cannot be read.
func (r *chunkReader) of(path string) []savedChunk {
	var chunks []savedChunk
	for {
		if r.next == nil {
			var chunk savedChunk
			if !r.rows.Next() || r.rows.Scan(&r.path, &chunk.text, &chunk.vector) != nil {
				return chunks
			}
			r.next = &chunk
		}
		if r.path > path {
			return chunks
		}
		if r.path == path {
			chunks = append(chunks, *r.next)
		}
		r.next = nil
	}
}

func (d savedDocument) sum(madeBy string, chunks []savedChunk) string {
	values := [][]byte{
		[]byte(madeBy), []byte(d.path), []byte(d.stamp), textOf(d.title), textOf(d.session),
		[]byte(d.tags), []byte(d.metadata),
	}
	for _, chunk := range chunks {
		values = append(values, []byte(chunk.text), chunk.vector)
	}
	return checksum(values...)
}

func (s *salvaging) add(ctx context.Context, doc savedDocument, chunks []savedChunk) error {
	_, err := s.tx.ExecContext(ctx, "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)",
		doc.path, doc.stamp, doc.title, doc.session, doc.tags, doc.metadata, doc.checksum)
	if err != nil {
		return err
	}
	for ordinal, chunk := range chunks {
		s.chunks++
		_, err := s.tx.ExecContext(ctx, "INSERT INTO chunks VALUES (?, ?, ?, ?, ?)",
			s.chunks, doc.path, ordinal, chunk.text, chunk.vector)
		if err != nil {
			return err
		}
		_, err = s.tx.ExecContext(ctx, "INSERT INTO chunk_terms(rowid, text) VALUES (?, ?)",
			s.chunks, text.NFKC(chunk.text))
		if err != nil {
			return err
		}
	}
	return nil
}
