package index

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

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

// Keyword returns the best limit chunks by bm25, with the statistics of the whole brain.
func (ix *Index) Keyword(ctx context.Context, query string, filter Filter, limit int) ([]rank.Hit, error) {
	expression := matchExpression(query)
	if expression == "" {
		return nil, nil
	}
	parts := min(ix.readers, 1+len(ix.slots)/slotsWorthAReader)
	found := make([][]rank.Hit, parts)
	var group errgroup.Group
	for part := range parts {
		group.Go(func() (err error) {
			from, to := len(ix.slots)*part/parts, len(ix.slots)*(part+1)/parts
			found[part], err = ix.matches(ctx, expression, filter, from, to, limit)
			return err
		})
	}
	err := group.Wait()
	return rank.Best(slices.Concat(found...), limit, ix.Compare), err
}

// slotsWorthAReader is how many slots justify another reader: each weighs the query's terms again.
const slotsWorthAReader = 16_384

// matches returns the candidates for the best limit among the slots from up to to; scores use the
// statistics of the whole brain.
func (ix *Index) matches(
	ctx context.Context, expression string, filter Filter, from, to, limit int,
) ([]rank.Hit, error) {
	if filter.allowsAll() {
		// Fetching a row takes as long as scoring it. SQLite does not know the order of equal scores,
		// so that these are the best only if the next score is worse.
		most := 2*limit + 64
		hits, err := ix.fetch(ctx, termsMatch+" ORDER BY score DESC LIMIT ?", filter, expression, from+1, to, most)
		if err != nil || len(hits) < most || hits[most-1].Score < hits[limit-1].Score {
			return hits, err
		}
	}
	return ix.fetch(ctx, termsMatch, filter, expression, from+1, to)
}

const termsMatch = `SELECT rowid - 1, -bm25(chunk_terms) AS score FROM chunk_terms
	WHERE chunk_terms MATCH ? AND rowid BETWEEN ? AND ?`

// fetch returns the chunks of a statement that the filter allows.
func (ix *Index) fetch(ctx context.Context, statement string, filter Filter, values ...any) ([]rank.Hit, error) {
	rows, err := ix.db.QueryContext(ix.cancellable(ctx), statement, values...)
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
	return hits, rows.Err()
}

// matchExpression returns the FTS5 expression of a query, empty if the query has no term.
func matchExpression(query string) string {
	terms := text.QueryTerms(query)
	if len(terms) == 0 {
		return ""
	}
	return `"` + strings.Join(terms, `" OR "`) + `"`
}

// Semantic returns the best limit chunks by kernel; it ranks all that the filter allows.
func (ix *Index) Semantic(vector embed.Vector, kernel rank.Kernel, filter Filter, limit int) ([]rank.Hit, error) {
	if !ix.vectors.fits(len(vector)) {
		return nil, problem.New(problem.BadGateway, "the embedder returned %d dimensions, the index has %d",
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
	for i := range hits {
		hits[i].Score = kernel(hits[i].Score)
	}
	return rank.Best(hits, limit, ix.Compare), nil
}

// Chunk is a chunk with the fields of its document.
type Chunk struct {
	Path     string
	Ordinal  int
	Text     string
	Title    *string
	Metadata wire.Object
}

// Chunks reads the chunks of hits, in their order.
func (ix *Index) Chunks(ctx context.Context, hits []rank.Hit) ([]Chunk, error) {
	ctx = ix.cancellable(ctx)
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
