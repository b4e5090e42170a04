package index

import (
	"encoding/binary"
	"math"

	"memoryd/internal/embed"
)

// matrix holds the vectors of one brain, a row a slot. It takes its dimension from the first.
type matrix struct {
	dims  int
	count int
	rows  []float32
}

// fits tells whether vectors of so many dimensions can be held, or compared with those held.
func (m *matrix) fits(dims int) bool { return m.count == 0 || dims == m.dims }

// put fills the row of a slot that is free.
func (m *matrix) put(slot int, vector embed.Vector) {
	if m.count == 0 {
		m.dims, m.rows = len(vector), nil
	}
	if end := (slot + 1) * m.dims; end > len(m.rows) {
		m.rows = append(m.rows, make([]float32, end-len(m.rows))...)
	}
	copy(m.rows[slot*m.dims:], vector)
	m.count++
}

// drop counts off a row; without an embedder there are none.
func (m *matrix) drop() { m.count = max(m.count-1, 0) }

// query is a vector without its zeros: a feature hash of a question has some twenty other values.
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

// dot sums the products in the order of the dimensions, which is the contract's.
func (m *matrix) dot(q query, slot int) float64 {
	row := m.rows[slot*m.dims : (slot+1)*m.dims]
	sum := 0.0
	for i, place := range q.places {
		sum += float64(q.values[i] * float64(row[place])) // never a fused multiply-add
	}
	return sum
}

func encodeVector(vector embed.Vector) []byte {
	blob := make([]byte, 0, 4*len(vector))
	for _, value := range vector {
		blob = binary.LittleEndian.AppendUint32(blob, math.Float32bits(value))
	}
	return blob
}

func decodeVector(blob []byte) embed.Vector {
	vector := make(embed.Vector, len(blob)/4)
	for i := range vector {
		vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(blob[4*i:]))
	}
	return vector
}
