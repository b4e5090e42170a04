package rank

import "slices"

// FuseMinMax scores alpha · vector + (1 - alpha) · keyword, each leg min-max scaled, a missing score
// being 0. The legs are sorted best first; the result is unsorted.
func FuseMinMax(keyword, vector []Hit, alpha float64) []Hit {
	byKeyword, byVector := minMax(keyword), minMax(vector)
	return fused(keyword, vector, func(slot int) float64 {
		// The conversions prevent a fused multiply-add.
		return float64(alpha*byVector[slot]) + float64((1-alpha)*byKeyword[slot])
	})
}

// FuseReciprocal scores the sum of 1 / (k + rank) over both legs, with ranks from 0.
func FuseReciprocal(keyword, vector []Hit, k int) []Hit {
	byKeyword, byVector := reciprocal(keyword, k), reciprocal(vector, k)
	return fused(keyword, vector, func(slot int) float64 {
		return byKeyword[slot] + byVector[slot]
	})
}

// fused returns each slot of both legs once, with its rounded score.
func fused(keyword, vector []Hit, score func(slot int) float64) []Hit {
	seen := make(map[int]bool, len(keyword)+len(vector))
	hits := make([]Hit, 0, len(keyword)+len(vector))
	for _, hit := range slices.Concat(keyword, vector) {
		if !seen[hit.Slot] {
			seen[hit.Slot] = true
			hits = append(hits, Hit{Slot: hit.Slot, Score: Round(score(hit.Slot))})
		}
	}
	return hits
}

func minMax(leg []Hit) map[int]float64 {
	scaled := make(map[int]float64, len(leg))
	if len(leg) == 0 {
		return scaled
	}
	low := leg[len(leg)-1].Score
	span := leg[0].Score - low
	for _, hit := range leg {
		if span == 0 {
			scaled[hit.Slot] = 1
		} else {
			scaled[hit.Slot] = (hit.Score - low) / span
		}
	}
	return scaled
}

func reciprocal(leg []Hit, k int) map[int]float64 {
	scores := make(map[int]float64, len(leg))
	for rank, hit := range leg {
		scores[hit.Slot] = 1 / float64(k+rank)
	}
	return scores
}
