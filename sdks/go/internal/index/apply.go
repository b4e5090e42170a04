package index

import (
	"fmt"
	"log/slog"
	"slices"

	"memoryd/internal/embed"
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

// Apply adds documents, replacing those of the same path, and removes the removed paths: all or
// nothing.
func (ix *Index) Apply(documents []Document, removed ...string) error {
	records := make([]record, 0, len(removed)+len(documents))
	for _, path := range removed {
		records = append(records, record{Path: path, Removed: true})
	}
	for _, doc := range documents {
		for _, vector := range doc.Vectors {
			if err := ix.vectors.check(len(vector)); err != nil {
				return err
			}
		}
		metadata, err := wire.Marshal(doc.Metadata)
		if err != nil {
			return fmt.Errorf("cannot change the index: %w", err)
		}
		records = append(records, record{
			Path: doc.Path, Stamp: doc.Stamp, Title: doc.Title, Tags: doc.Tags, Metadata: metadata,
			Chunks: doc.Chunks, vectors: doc.Vectors,
		})
	}
	if ix.log != nil {
		if err := ix.log.append(records); err != nil {
			return fmt.Errorf("cannot change the index: %w", err)
		}
	}
	for _, r := range records {
		ix.apply(r)
	}
	ix.tidy()
	ix.changed()
	return nil
}

// apply changes what is in memory, which cannot fail.
func (ix *Index) apply(r record) {
	if old := ix.documents[r.Path]; old != nil {
		for _, number := range old.slots {
			ix.terms.remove(number, ix.slots[number].text)
			ix.slots[number] = slot{}
		}
		ix.chunks -= len(old.slots)
		ix.live -= old.size
		if old.inSession() {
			ix.turns -= len(old.slots)
		}
		delete(ix.documents, r.Path)
	}
	if ix.chunks == 0 {
		// The next vectors may have other dimensions.
		ix.slots, ix.terms, ix.vectors = nil, postings{}, matrix{}
	}
	if r.Removed {
		return
	}
	doc := &document{path: r.Path, stamp: r.Stamp, title: r.Title, tags: r.Tags, metadata: r.Metadata, size: r.size, turn: r.turn()}
	for ordinal, text := range r.Chunks {
		number := len(ix.slots)
		ix.slots = append(ix.slots, slot{document: doc, ordinal: ordinal, text: text})
		ix.terms.add(number, text)
		if r.vectors != nil {
			ix.vectors.put(number, r.vectors[ordinal])
		}
		doc.slots = append(doc.slots, number)
	}
	ix.chunks += len(doc.slots)
	ix.live += doc.size
	if doc.inSession() {
		ix.turns += len(doc.slots)
	}
	ix.documents[r.Path] = doc
}

// restore applies a record of the log. If a removal before it is lost, its vectors may have other
// dimensions than those it meets: then its document is missing, and indexed again from its file.
func (ix *Index) restore(r record) {
	misfits := func(vector embed.Vector) bool { return ix.vectors.check(len(vector)) != nil }
	if slices.ContainsFunc(r.vectors, misfits) {
		r = record{Path: r.Path, Removed: true}
	}
	ix.apply(r)
}

// tidy drops what is no longer used, from memory and from the log, once it is most of them.
func (ix *Index) tidy() {
	if len(ix.slots) > 2*ix.chunks+leastWaste {
		ix.compact()
	}
	if ix.log == nil || !ix.log.wasteful(len(ix.documents), ix.live) {
		return
	}
	if err := ix.log.rewrite(ix.records); err != nil {
		slog.Warn("cannot rewrite the log of an index; it stays as it is", "error", err)
	}
}

// compact renumbers the slots without those that are free.
func (ix *Index) compact() {
	numbers := make([]int, len(ix.slots))
	kept := ix.slots[:0]
	for old, s := range ix.slots {
		if s.document == nil {
			numbers[old] = free
			continue
		}
		numbers[old] = len(kept)
		ix.vectors.move(old, len(kept))
		s.document.slots[s.ordinal] = len(kept)
		kept = append(kept, s)
	}
	clear(ix.slots[len(kept):])
	ix.slots = kept
	ix.vectors.cut(len(kept))
	ix.terms.renumber(numbers)
}

const free = -1

// records yields what the index holds.
func (ix *Index) records(yield func(record) bool) {
	for _, doc := range ix.documents {
		r := record{Path: doc.path, Stamp: doc.stamp, Title: doc.title, Tags: doc.tags, Metadata: doc.metadata}
		for _, number := range doc.slots {
			r.Chunks = append(r.Chunks, ix.slots[number].text)
			if ix.vectors.dims > 0 {
				r.vectors = append(r.vectors, ix.vectors.row(number))
			}
		}
		if !yield(r) {
			return
		}
	}
}
