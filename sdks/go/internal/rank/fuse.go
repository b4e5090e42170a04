package rank

// FuseMinMax scores alpha · vector + (1 - alpha) · keyword, each leg min-max scaled, a missing score
// being 0. The legs are sorted best first; the result is unsorted.
func FuseMinMax(keyword, vector []Hit, alpha float64) []Hit {
	sums := make(map[int]float64, len(keyword)+len(vector))
	add := func(leg []Hit, weight float64) {
		for _, hit := range leg {
			share, low := 1.0, leg[len(leg)-1].Score
			if span := leg[0].Score - low; span != 0 {
				share = (hit.Score - low) / span
			}
			sums[hit.Slot] += float64(weight * share) // the conversion prevents a fused multiply-add
		}
	}
	add(vector, alpha)
	add(keyword, 1-alpha)
	return fused(sums)
}

// FuseReciprocal scores the sum of 1 / (k + rank) over both legs, with ranks from 0.
func FuseReciprocal(keyword, vector []Hit, k int) []Hit {
	sums := make(map[int]float64, len(keyword)+len(vector))
	for _, leg := range [][]Hit{keyword, vector} {
		for rank, hit := range leg {
			sums[hit.Slot] += 1 / float64(k+rank)
		}
	}
	return fused(sums)
}

// fused returns each slot with its rounded score.
func fused(sums map[int]float64) []Hit {
	hits := make([]Hit, 0, len(sums))
	for slot, sum := range sums {
		hits = append(hits, Hit{Slot: slot, Score: Round(sum)})
	}
	return hits
}
