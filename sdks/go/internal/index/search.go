package index

import (
	"cmp"
	"context"
	"strings"

	"memoryd/internal/embed"
	"memoryd/internal/problem"
	"memoryd/internal/rank"
	"memoryd/internal/text"
	"memoryd/internal/wire"
)

// Compare is the ranking order: best score, then path by its bytes, then ordinal.
func (ix *Index) Compare(a, b rank.Hit) int {
	if a.Score != b.Score {
		return cmp.Compare(b.Score, a.Score)
	}
	left, right := ix.slots[a.Slot], ix.slots[b.Slot]
	return cmp.Or(
		strings.Compare(left.document.path, right.document.path),
		cmp.Compare(left.ordinal, right.ordinal),
	)
}

// Keyword returns the best limit chunks by bm25, whose statistics are the whole brain's.
func (ix *Index) Keyword(ctx context.Context, query string, filter Filter, limit int) ([]rank.Hit, error) {
	expression := matchExpression(query)
	if expression == "" {
		return nil, nil
	}
	// All matches are fetched: SQLite knows neither filters nor the order of equal scores.
	rows, err := ix.db.QueryContext(steady(ctx),
		"SELECT rowid - 1, -bm25(chunk_terms) FROM chunk_terms WHERE chunk_terms MATCH ?", expression)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	allows := filter.compiled()
	var hits []rank.Hit
	for rows.Next() {
		var hit rank.Hit
		if err := rows.Scan(&hit.Slot, &hit.Score); err != nil {
			return nil, err
		}
		if allows(ix.slots[hit.Slot].document) {
			hit.Score = rank.Round(hit.Score)
			hits = append(hits, hit)
		}
	}
	return rank.Best(hits, limit, ix.Compare), rows.Err()
}

// matchExpression is the FTS5 expression of a query; empty where the query has no term.
func matchExpression(query string) string {
	terms := text.QueryTerms(query)
	if len(terms) == 0 {
		return ""
	}
	return `"` + strings.Join(terms, `" OR "`) + `"`
}

// Semantic returns the best limit chunks by cosine; all that the filter allows are ranked.
func (ix *Index) Semantic(vector embed.Vector, filter Filter, limit int) ([]rank.Hit, error) {
	if !ix.vectors.fits(len(vector)) {
		return nil, problem.New(problem.BadGateway, "the embedder answers %d dimensions, and the index holds %d",
			len(vector), ix.vectors.dims)
	}
	allows := filter.compiled()
	hits := make([]rank.Hit, 0, len(ix.slots))
	for number, s := range ix.slots {
		if s.document != nil && allows(s.document) {
			hits = append(hits, rank.Hit{Slot: number})
		}
	}
	ix.vectors.score(sparse(vector), hits)
	return rank.Best(hits, limit, ix.Compare), nil
}

// Chunk is a chunk with what its document says of it.
type Chunk struct {
	Path     string
	Ordinal  int
	Text     string
	Title    *string
	Metadata wire.Object
}

// Chunks reads what was hit, in that order.
func (ix *Index) Chunks(ctx context.Context, hits []rank.Hit) ([]Chunk, error) {
	ctx = steady(ctx)
	statement, err := ix.db.PrepareContext(ctx,
		"SELECT path, ordinal, text, title, metadata FROM chunks JOIN documents USING (path) WHERE id = ?")
	if err != nil {
		return nil, err
	}
	defer func() { _ = statement.Close() }()
	chunks := make([]Chunk, len(hits))
	for i, hit := range hits {
		var metadata []byte
		chunk := &chunks[i]
		err := statement.QueryRowContext(ctx, hit.Slot+1).
			Scan(&chunk.Path, &chunk.Ordinal, &chunk.Text, &chunk.Title, &metadata)
		if err != nil {
			return nil, err
		}
		if err := wire.Unmarshal(metadata, &chunk.Metadata); err != nil {
			return nil, err
		}
	}
	return chunks, nil
}
