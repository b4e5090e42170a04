package index

import (
	"math/rand/v2"
	"testing"

	"memoryd/internal/embed"
	"memoryd/internal/rank"
)

func randomVector(random *rand.Rand, dims int) embed.Vector {
	vector := make(embed.Vector, dims)
	for i := range vector {
		vector[i] = float32(random.NormFloat64())
	}
	return vector
}

func TestScoresAreSummedInTheOrderOfTheDimensions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, count := range []int{0, 1, 2, 3, 4, 5, 1023, 3001} {
		for _, dims := range []int{1, 7, 384} {
			var m matrix
			vectors := make([]embed.Vector, count)
			hits := []rank.Hit{}
			for slot := range vectors {
				vectors[slot] = randomVector(random, dims)
				m.put(slot, vectors[slot])
				if slot%5 != 3 {
					hits = append(hits, rank.Hit{Slot: slot})
				}
			}
			vector := randomVector(random, dims)
			vector[dims/2] = 0
			m.score(sparse(vector), hits)
			for _, hit := range hits {
				want := 0.0
				for i, value := range vector {
					want += float64(float64(value) * float64(vectors[hit.Slot][i]))
				}
				if hit.Score != rank.Round(want) {
					t.Fatalf("%d vectors of %d, slot %d: %v, want %v", count, dims, hit.Slot, hit.Score, want)
				}
			}
		}
	}
}

func BenchmarkScore(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	const count, dims = 100_000, 384
	var m matrix
	hits := make([]rank.Hit, count)
	for slot := range hits {
		m.put(slot, randomVector(random, dims))
		hits[slot].Slot = slot
	}
	q := sparse(randomVector(random, dims))
	for b.Loop() {
		m.score(q, hits)
	}
}
