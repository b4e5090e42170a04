// Package rank rounds scores, orders hits and fuses two rankings.
package rank

import (
	"math"
	"slices"
)

// Hit is a chunk, identified by its slot in the index, and its score.
type Hit struct {
	Slot  int
	Score float64
}

// Round rounds score to the 1e-9 at which all comparison and fusion is done.
//
// Languages sum in different orders and differ in the last bits; rounding half up on the scaled
// value is plain IEEE arithmetic, so that scores of equal meaning have equal bits.
func Round(score float64) float64 {
	scaled := float64(score * 1e9)
	if math.IsInf(scaled, 0) {
		return score // from a reranker, so large that it has no fraction
	}
	return math.Floor(scaled+0.5) / 1e9
}

// Kernel turns a rounded cosine into the rounded score of a semantic ranking.
type Kernel func(cosine float64) float64

// Cosine leaves the score as it is.
func Cosine(cosine float64) float64 { return cosine }

// InverseL2 returns 1 / (1 + L2) of vectors of length 1, whose distance L2 is √(2 − 2 · cosine).
func InverseL2(cosine float64) float64 {
	// float32 vectors have cosines slightly above 1.
	return Round(1 / (1 + math.Sqrt(max(0, 2-2*cosine))))
}

// Best sorts hits by compare and returns the first limit of them; limit is at least 1.
func Best(hits []Hit, limit int, compare func(a, b Hit) int) []Hit {
	if len(hits) > limit {
		hits = contenders(hits, limit)
	}
	slices.SortFunc(hits, compare)
	return hits[:min(len(hits), limit)]
}

// contenders drops hits whose score alone keeps them out of the first limit. Ties with the last place
// stay, for the order to decide. Of 100,000 hits few enter the best once those are good: this takes a
// tenth of the time of sorting the scores.
func contenders(hits []Hit, limit int) []Hit {
	best := make([]float64, limit) // ascending
	for i, hit := range hits[:limit] {
		best[i] = hit.Score
	}
	slices.Sort(best)
	for _, hit := range hits[limit:] {
		if hit.Score > best[0] {
			place, _ := slices.BinarySearch(best, hit.Score)
			copy(best, best[1:place])
			best[place-1] = hit.Score
		}
	}
	return slices.DeleteFunc(hits, func(hit Hit) bool { return hit.Score < best[0] })
}
