package index

import (
	"runtime"
	"slices"
	"sync"

	"memoryd/internal/embed"
	"memoryd/internal/problem"
	"memoryd/internal/rank"
)

// matrix holds the vectors of one brain, one row per slot, in blocks, so that it grows without being
// copied. The first vector sets its dimension.
type matrix struct {
	dims   int
	blocks [][]float32
}

const blockRows = 1024

// check fails unless vectors of this dimension can be stored or compared.
func (m *matrix) check(dims int) error {
	if m.dims == 0 || dims == m.dims {
		return nil
	}
	return problem.New(problem.BadGateway, "the embedder returned %d dimensions, the index has %d", dims, m.dims)
}

// put fills the row of the next slot.
func (m *matrix) put(slot int, vector embed.Vector) {
	m.dims = len(vector)
	if slot/blockRows == len(m.blocks) {
		m.blocks = append(m.blocks, make([]float32, blockRows*m.dims))
	}
	copy(m.row(slot), vector)
}

func (m *matrix) row(slot int) []float32 {
	start := slot % blockRows * m.dims
	return m.blocks[slot/blockRows][start : start+m.dims]
}

// move copies a row to an earlier one.
func (m *matrix) move(from, to int) {
	if m.dims > 0 {
		copy(m.row(to), m.row(from))
	}
}

// cut drops the rows after the first ones.
func (m *matrix) cut(rows int) {
	if m.dims > 0 {
		m.blocks = slices.Delete(m.blocks, (rows+blockRows-1)/blockRows, len(m.blocks))
	}
}

// query is a vector without its zeros: the feature hash of a question has about twenty other values.
type query struct {
	places []int
	values []float64
}

func sparse(vector embed.Vector) query {
	var q query
	for place, value := range vector {
		if value != 0 {
			q.places = append(q.places, place)
			q.values = append(q.values, float64(value))
		}
	}
	return q
}

// score sets the hits' scores, on all cores: a hundred thousand vectors take one core 40 ms.
func (m *matrix) score(q query, hits []rank.Hit) {
	share := max(len(hits)/runtime.GOMAXPROCS(0)+1, smallestShare)
	var sharing sync.WaitGroup
	for part := range slices.Chunk(hits, share) {
		if len(hits) <= share {
			m.scorePart(q, part)
			return
		}
		sharing.Add(1)
		go func() {
			defer sharing.Done()
			m.scorePart(q, part)
		}()
	}
	sharing.Wait()
}

// smallestShare is the least work that is worth a goroutine: about 0.4 ms.
const smallestShare = 1024

func (m *matrix) scorePart(q query, hits []rank.Hit) {
	for four := range slices.Chunk(hits, 4) {
		var rows [4][]float32
		for i := range rows {
			rows[i] = m.row(four[min(i, len(four)-1)].Slot)
		}
		sums := q.dots(rows)
		for i := range four {
			four[i].Score = rank.Round(sums[i])
		}
	}
}

// dots sums the products of each row in the order of the dimensions, as the contract requires. Each
// addition depends on the previous one; interleaving four rows lets the processor overlap them.
func (q query) dots(rows [4][]float32) [4]float64 {
	a := rows[0]
	b, c, d := rows[1][:len(a)], rows[2][:len(a)], rows[3][:len(a)]
	values := q.values[:len(q.places)]
	var sumA, sumB, sumC, sumD float64
	for i, place := range q.places {
		value := values[i]
		// The conversions prevent fused multiply-adds.
		sumA += float64(value * float64(a[place]))
		sumB += float64(value * float64(b[place]))
		sumC += float64(value * float64(c[place]))
		sumD += float64(value * float64(d[place]))
	}
	return [4]float64{sumA, sumB, sumC, sumD}
}
