package index

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
	"unique"

	"github.com/go-json-experiment/json/jsontext"

	"memoryd/internal/embed"
	"memoryd/internal/rank"
	"memoryd/internal/text"
	"memoryd/internal/wire"
)

// turn is what a document's metadata says of its place in a conversation.
type turn struct {
	session *string               // nil unless it is a string
	index   float64               // +Inf unless it is a number
	speaker unique.Handle[string] // zero unless it is a string; a brain has few, each of many documents
}

func (r record) turn() turn {
	metadata := wire.Value[struct {
		Session jsontext.Value `json:"session_id"`
		Index   jsontext.Value `json:"index"`
		Speaker jsontext.Value `json:"speaker"`
	}](r.Metadata)
	t := turn{session: wire.Value[*string](metadata.Session), index: math.Inf(1)}
	if metadata.Index.Kind() == '0' {
		if index, err := strconv.ParseFloat(string(metadata.Index), 64); err == nil {
			t.index = index
		}
	}
	if speaker := wire.Value[string](metadata.Speaker); speaker != "" {
		t.speaker = unique.Make(speaker)
	}
	return t
}

// inSession reports whether the chunks of the document are turns.
func (t turn) inSession() bool { return t.session != nil && *t.session != "" }

// HasTurns reports whether any chunk is a turn.
func (ix *Index) HasTurns() bool { return ix.turns > 0 }

// conversations are all chunks in the order in which things were said, session by session. The order
// does not depend on what was stored first: sums over all chunks have equal bits.
type conversations struct {
	places []rank.Place
	at     []int32    // the place of each slot, or free
	names  [][]string // the terms of each speaker's name; nobody has none
}

// nobody is the speaker of a chunk that is not a turn, or whose speaker has no name.
const nobody = 0

// newConversations takes as long as some queries; it is made again only after a change.
func (ix *Index) newConversations() *conversations {
	sessions := map[string][]*document{}
	var alone []*document
	for _, s := range ix.slots {
		switch {
		case s.document == nil || s.ordinal > 0:
		case s.document.inSession():
			sessions[*s.document.session] = append(sessions[*s.document.session], s.document)
		default:
			alone = append(alone, s.document)
		}
	}
	c := &conversations{
		places: make([]rank.Place, 0, ix.chunks),
		at:     slices.Repeat([]int32{free}, len(ix.slots)),
		names:  [][]string{nil},
	}
	speakers := map[unique.Handle[string]]uint32{{}: nobody}
	session := uint32(0)
	for _, id := range slices.Sorted(maps.Keys(sessions)) {
		turns := sessions[id]
		slices.SortFunc(turns, func(a, b *document) int {
			if a.index != b.index {
				return cmp.Compare(a.index, b.index)
			}
			return strings.Compare(a.path, b.path)
		})
		for _, doc := range turns {
			speaker := c.speaker(doc, speakers)
			for _, number := range doc.slots {
				c.place(number, ix.slots[number].text, session, speaker)
			}
		}
		session++
	}
	slices.SortFunc(alone, func(a, b *document) int { return strings.Compare(a.path, b.path) })
	for _, doc := range alone {
		for _, number := range doc.slots {
			c.place(number, ix.slots[number].text, session, nobody)
			session++
		}
	}
	return c
}

// speaker returns the number of a document's speaker, who is nobody if the name has no term.
func (c *conversations) speaker(doc *document, known map[unique.Handle[string]]uint32) uint32 {
	number, ok := known[doc.speaker]
	if ok {
		return number
	}
	if name := text.Terms(doc.speaker.Value()); len(name) > 0 {
		number = uint32(len(c.names))
		c.names = append(c.names, name)
	}
	known[doc.speaker] = number
	return number
}

func (c *conversations) place(slot int, content string, session, speaker uint32) {
	c.at[slot] = int32(len(c.places))
	c.places = append(c.places, rank.Place{
		Slot:    uint32(slot),
		Session: session,
		Speaker: speaker,
		Points:  uint16(min(utf8.RuneCountInString(content), rank.LongestTurn)),
		Asks:    strings.Contains(content, "?"),
	})
}

// named reports, for each speaker, whether a query of these terms names them.
func (c *conversations) named(terms []string) []bool {
	asked := text.Set(terms)
	named := make([]bool, len(c.names))
	for speaker, name := range c.names {
		named[speaker] = len(name) > 0 && !slices.ContainsFunc(name, func(term string) bool { return !asked[term] })
	}
	return named
}

// Conversation returns the best limit chunks by words, vectors, speaker, length and reply, each of them
// computed over the whole brain. Without a vector it finds only chunks that a word reaches.
func (ix *Index) Conversation(
	ctx context.Context, query string, vector embed.Vector, filter Filter, limit int,
) ([]rank.Hit, error) {
	c := ix.conversations()
	var cosines []float64
	if vector != nil {
		if err := ix.vectors.check(len(vector)); err != nil {
			return nil, err
		}
		cosines = ix.cosines(c.places, vector)
	}
	hits, err := c.ranked(ctx, text.QueryTerms(query), func(term string) iter.Seq2[int, float64] {
		return ix.scores(ix.occurrences(term))
	}, cosines)
	if err != nil {
		return nil, err
	}
	allows := filter.compiled()
	hits = slices.DeleteFunc(hits, func(hit rank.Hit) bool { return !allows(ix.slots[hit.Slot].document) })
	return rank.Best(hits, limit, ix.Compare), nil
}

// ranked returns the hits of a query, unsorted. scores yields a term's scores by slot; cosines are by
// place, and nil if no vectors are compared.
func (c *conversations) ranked(
	ctx context.Context, terms []string, scores func(term string) iter.Seq2[int, float64], cosines []float64,
) ([]rank.Hit, error) {
	words, keywords, counts := rank.NewWords(c.places), keywords(terms), map[string]int{}
	for _, term := range keywords {
		counts[term]++
	}
	for _, term := range keywords {
		times := counts[term]
		if times == 0 {
			continue // added before
		}
		delete(counts, term)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		words.Add(c.placed(scores(term)), times)
	}
	return rank.Conversation(words, cosines, c.named(terms)), nil
}

// keywords are the terms without stop words, unless nothing is left of them.
func keywords(terms []string) []string {
	if keywords := text.WithoutStopWords(terms); len(keywords) > 0 {
		return keywords
	}
	return terms
}

// placed yields the places of slots, without those of chunks that are gone.
func (c *conversations) placed(scores iter.Seq2[int, float64]) iter.Seq2[int, float64] {
	return func(yield func(int, float64) bool) {
		for slot, score := range scores {
			if at := c.at[slot]; at != free && !yield(int(at), score) {
				return
			}
		}
	}
}

func (ix *Index) cosines(places []rank.Place, vector embed.Vector) []float64 {
	hits := make([]rank.Hit, len(places))
	for at, place := range places {
		hits[at].Slot = int(place.Slot)
	}
	ix.vectors.score(sparse(vector), hits)
	cosines := make([]float64, len(hits))
	for at, hit := range hits {
		cosines[at] = hit.Score
	}
	return cosines
}
