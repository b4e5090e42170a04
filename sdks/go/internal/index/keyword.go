package index

import (
	"context"
	"iter"
	"math"
	"slices"

	"memoryd/internal/rank"
	"memoryd/internal/text"
)

// postings says which chunks contain a token, and how often.
type postings struct {
	lists   map[string]*list
	lengths []int // tokens of each slot
	total   int   // tokens of all chunks
}

// list is sorted by slot; chunks that are gone stay in it until the index is compacted.
type list struct {
	entries []entry
	chunks  int // that are not gone
}

type entry struct{ slot, count uint32 }

func (p *postings) add(slot int, content string) {
	if p.lists == nil {
		p.lists = map[string]*list{}
	}
	length := 0
	for token := range text.Tokens(content) {
		length++
		l := p.lists[string(token)]
		if l == nil {
			l = &list{}
			p.lists[string(token)] = l
		}
		if last := len(l.entries) - 1; last >= 0 && l.entries[last].slot == uint32(slot) {
			l.entries[last].count++
			continue
		}
		l.entries = append(l.entries, entry{uint32(slot), 1})
		l.chunks++
	}
	p.lengths = append(p.lengths, length)
	p.total += length
}

// remove counts a chunk no longer.
func (p *postings) remove(slot int, content string) {
	seen := map[*list]bool{}
	for token := range text.Tokens(content) {
		if l := p.lists[string(token)]; !seen[l] {
			seen[l] = true
			l.chunks--
		}
	}
	p.total -= p.lengths[slot]
}

// renumber gives each slot its new number, and drops those that are free.
func (p *postings) renumber(numbers []int) {
	for token, l := range p.lists {
		kept := l.entries[:0]
		for _, e := range l.entries {
			if number := numbers[e.slot]; number != free {
				kept = append(kept, entry{uint32(number), e.count})
			}
		}
		if len(kept) == 0 {
			delete(p.lists, token)
		}
		l.entries = slices.Clip(kept)
	}
	lengths := p.lengths[:0]
	for old, number := range numbers {
		if number != free {
			lengths = append(lengths, p.lengths[old])
		}
	}
	p.lengths = lengths
}

// Keyword returns the best limit chunks by bm25, with the statistics of the whole brain.
func (ix *Index) Keyword(ctx context.Context, query string, filter Filter, limit int) ([]rank.Hit, error) {
	scores := make([]float64, len(ix.slots))
	for _, term := range text.QueryTerms(query) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for number, score := range ix.scores(ix.occurrences(term)) {
			scores[number] += score
		}
	}
	allows := filter.compiled()
	var hits []rank.Hit
	for number, score := range scores {
		if score == 0 {
			continue
		}
		if doc := ix.slots[number].document; doc != nil && allows(doc) {
			hits = append(hits, rank.Hit{Slot: number, Score: rank.Round(score)})
		}
	}
	return rank.Best(hits, limit, ix.Compare), nil
}

// The parameters of bm25.
const (
	k1 = 1.2
	b  = 0.75
)

// scores yields the slots in which a term occurs, and its part of their scores, in the order of FTS5's
// arithmetic. The conversions prevent fused multiply-adds.
func (ix *Index) scores(l list) iter.Seq2[int, float64] {
	return func(yield func(int, float64) bool) {
		all, with := float64(ix.chunks), float64(l.chunks)
		idf := math.Log((all - with + 0.5) / (with + 0.5))
		if idf <= 0 {
			idf = 1e-6
		}
		mean := float64(ix.terms.total) / all
		for _, e := range l.entries {
			count, length := float64(e.count), float64(ix.terms.lengths[e.slot])
			norm := float64(k1 * (1 - b + float64(b*length)/mean))
			if !yield(int(e.slot), float64(idf*(float64(count*(k1+1))/(count+norm)))) {
				return
			}
		}
	}
}

// occurrences returns where a term of a query occurs. It is a phrase if it contains one of the few
// code points that are letters or numbers for the contract, and not for the tokenizer.
func (ix *Index) occurrences(term string) list {
	var phrase []string
	for token := range text.Tokens(term) {
		phrase = append(phrase, string(token))
	}
	if len(phrase) == 0 || ix.terms.lists[phrase[0]] == nil {
		return list{}
	}
	first := *ix.terms.lists[phrase[0]]
	if len(phrase) == 1 {
		return first
	}
	var found list
	for _, e := range first.entries {
		if ix.slots[e.slot].document == nil {
			continue
		}
		var tokens []string
		for token := range text.Tokens(ix.slots[e.slot].text) {
			tokens = append(tokens, string(token))
		}
		count := 0
		for start := range tokens {
			if rest := tokens[start:]; len(rest) >= len(phrase) && slices.Equal(rest[:len(phrase)], phrase) {
				count++
			}
		}
		if count > 0 {
			found.entries = append(found.entries, entry{e.slot, uint32(count)})
			found.chunks++
		}
	}
	return found
}
