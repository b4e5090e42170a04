// Package index is the search index of one brain, in memory: postings for terms, a matrix for vectors.
// A log keeps what it was made from. Both are a cache of the files: what is missing or damaged is
// indexed again.
package index

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"memoryd/internal/embed"
	"memoryd/internal/rank"
	"memoryd/internal/wire"
)

// Index is safe for concurrent readers; Apply requires exclusive access.
//
// A chunk has a slot, a small integer that is its place in the postings and its row in the matrix.
type Index struct {
	log       *log // nil if another daemon holds its file
	documents map[string]*document
	slots     []slot
	terms     postings
	vectors   matrix
	chunks    int   // slots that are taken
	turns     int   // those of them that are turns
	live      int64 // bytes of the documents' records in the log

	// conversations is made by the first query that needs it.
	conversations func() *conversations
}

type document struct {
	path, stamp string
	title       *string
	tags        []string
	metadata    jsontext.Value
	slots       []int
	size        int64 // of its record in the log
	turn
}

// slot is free if document is nil, until the index is compacted.
type slot struct {
	document *document
	ordinal  int
	text     string
}

// Counts are the numbers that a brain reports.
type Counts struct {
	Documents, Chunks, Vectors int
}

// Open opens the index whose log is file, or one without a log if file is empty, for vectors of the
// embedder of this name. It lacks what the log lacks, or has damaged.
func Open(file, embedder string) (*Index, error) {
	ix := &Index{documents: map[string]*document{}}
	ix.changed()
	if file == "" {
		return ix, nil
	}
	opened, err := openLog(file, embedder)
	if err == nil {
		err = ix.load(opened)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the index: %w", err)
	}
	return ix, nil
}

// load fills the index from the log, which it closes if it fails.
func (ix *Index) load(opened *log) error {
	if err := opened.replay(ix.restore); err != nil {
		return closing(opened.file, err)
	}
	ix.log = opened
	ix.tidy()
	return nil
}

// changed forgets what was made from the chunks.
func (ix *Index) changed() { ix.conversations = sync.OnceValue(ix.newConversations) }

// Close closes the index; it must no longer be in use.
func (ix *Index) Close() error {
	if ix.log == nil {
		return nil
	}
	return ix.log.file.Close()
}

// Counts returns how many documents, chunks and vectors are searchable.
func (ix *Index) Counts() Counts {
	counts := Counts{Documents: len(ix.documents), Chunks: ix.chunks}
	if ix.vectors.dims > 0 {
		counts.Vectors = ix.chunks
	}
	return counts
}

// Stamps returns the stamp with which each document was indexed, by path.
func (ix *Index) Stamps() map[string]string {
	stamps := make(map[string]string, len(ix.documents))
	for path, doc := range ix.documents {
		stamps[path] = doc.stamp
	}
	return stamps
}

// Compare is the ranking order: best score, then path by its bytes, then ordinal.
func (ix *Index) Compare(a, b rank.Hit) int {
	if a.Score != b.Score {
		return cmp.Compare(b.Score, a.Score)
	}
	left, right := &ix.slots[a.Slot], &ix.slots[b.Slot]
	return cmp.Or(
		strings.Compare(left.document.path, right.document.path),
		cmp.Compare(left.ordinal, right.ordinal),
	)
}

// Chunk is a chunk with the fields of its document.
type Chunk struct {
	Path     string
	Ordinal  int
	Text     string
	Title    *string
	Metadata wire.Object
}

// Chunks returns the chunks of hits, in their order.
func (ix *Index) Chunks(hits []rank.Hit) ([]Chunk, error) {
	chunks := make([]Chunk, len(hits))
	for i, hit := range hits {
		s := ix.slots[hit.Slot]
		chunks[i] = Chunk{Path: s.document.path, Ordinal: s.ordinal, Text: s.text, Title: s.document.title}
		if err := wire.Unmarshal(s.document.metadata, &chunks[i].Metadata); err != nil {
			return nil, err
		}
	}
	return chunks, nil
}

// Semantic returns the best limit chunks by kernel; it ranks all that the filter allows.
func (ix *Index) Semantic(vector embed.Vector, kernel rank.Kernel, filter Filter, limit int) ([]rank.Hit, error) {
	if err := ix.vectors.check(len(vector)); err != nil {
		return nil, err
	}
	allows := filter.compiled()
	hits := make([]rank.Hit, 0, ix.chunks)
	for number := range ix.slots {
		if doc := ix.slots[number].document; doc != nil && allows(doc) {
			hits = append(hits, rank.Hit{Slot: number})
		}
	}
	ix.vectors.score(sparse(vector), hits)
	for i := range hits {
		hits[i].Score = kernel(hits[i].Score)
	}
	return rank.Best(hits, limit, ix.Compare), nil
}
