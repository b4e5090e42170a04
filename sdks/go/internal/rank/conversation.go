package rank

import (
	"iter"
	"math"
)

// LongestTurn is the number of code points from which on a turn's length no longer counts.
const LongestTurn = 300

// The weights of a conversation's ranking: of vectors, of speaker, of length, and of both neighbours
// of a vector. Words reach no further than four steps.
const (
	reach         = 4
	vectorWeight  = 1.4
	speakerWeight = 2.0
	lengthWeight  = 2.0
	besideWeight  = 0.5
)

// What a turn says counts for those that come after it by before, and for those before it by after:
// 0.7ⁿ and 0.6ⁿ, n steps away.
var (
	before = [reach]float64{0.7, 0.7 * 0.7, 0.7 * 0.7 * 0.7, 0.7 * 0.7 * 0.7 * 0.7}
	after  = [reach]float64{0.6, 0.6 * 0.6, 0.6 * 0.6 * 0.6, 0.6 * 0.6 * 0.6 * 0.6}
)

// leastDeviation is that of cosines that tell chunks apart.
const leastDeviation = 1e-9

// lengths holds ln(points / LongestTurn); 0 is that of no turn, because no chunk is empty.
var lengths = func() (table [LongestTurn + 1]float64) {
	for points := 1; points < len(table); points++ {
		table[points] = math.Log(float64(points) / LongestTurn)
	}
	return table
}()

// Place is a chunk in the order in which things were said. The chunks of a session are beside each
// other: the chunk n steps away is the place n further on, if that is of the same session.
type Place struct {
	Slot    uint32
	Session uint32
	Speaker uint32 // 0 for nobody
	Points  uint16 // code points of the text, at most LongestTurn
	Asks    bool   // the text contains a question mark
}

// Words sums, for each place, the scores of the query's terms.
type Words struct {
	places []Place
	sums   []float64
	best   []float64 // of the term that is being added; 0 where it does not reach
	raised []int32   // the places where it does
}

// NewWords returns the words of a query without a term.
func NewWords(places []Place) *Words {
	count := len(places)
	return &Words{
		places: places, sums: make([]float64, count), best: make([]float64, count), raised: make([]int32, 0, count),
	}
}

// Add adds a term that occurs in the query so many times. Its scores are those of the places that
// contain it, all positive; it costs as much as there are of them.
func (w *Words) Add(scores iter.Seq2[int, float64], times int) {
	for at, score := range scores {
		w.raise(at, score)
		session := w.places[at].Session
		for i, share := range before {
			next := at + i + 1
			if next >= len(w.places) || w.places[next].Session != session {
				break
			}
			w.raise(next, share*score)
		}
		for i, share := range after {
			previous := at - i - 1
			if previous < 0 || w.places[previous].Session != session {
				break
			}
			w.raise(previous, share*score)
		}
	}
	for _, at := range w.raised {
		w.sums[at] += float64(float64(times) * w.best[at]) // the conversion prevents a fused multiply-add
		w.best[at] = 0
	}
	w.raised = w.raised[:0]
}

func (w *Words) raise(at int, score float64) {
	if w.best[at] == 0 {
		w.raised = append(w.raised, int32(at))
	}
	w.best[at] = max(w.best[at], score)
}

// Conversation scores places by their words, their rounded cosines, and whether their speaker is named.
// Without cosines, which are nil, it finds only those with words. Scores may be negative. The result is
// unsorted.
func Conversation(words *Words, cosines []float64, named []bool) []Hit {
	places, standard := words.places, standardized(cosines)
	hits := make([]Hit, 0, len(places))
	for at, place := range places {
		if cosines == nil && words.sums[at] == 0 {
			continue
		}
		follows := at > 0 && places[at-1].Session == place.Session
		precedes := at+1 < len(places) && places[at+1].Session == place.Session
		score := words.sums[at]
		// The conversions prevent fused multiply-adds.
		if cosines != nil {
			beside := 0.0
			if follows {
				beside += standard[at-1]
			}
			if precedes {
				beside += standard[at+1]
			}
			score += float64(vectorWeight * (standard[at] + float64(besideWeight*beside)))
		}
		if named[place.Speaker] {
			score += speakerWeight
		}
		if follows || precedes {
			score += float64(lengthWeight * lengths[place.Points])
			if !follows || places[at-1].Asks {
				score++
			}
			if place.Asks {
				score--
			}
		}
		hits = append(hits, Hit{Slot: int(place.Slot), Score: Round(score)})
	}
	return hits
}

// standardized returns by how many standard deviations each value exceeds the mean, or zeros if the
// values are equal.
func standardized(values []float64) []float64 {
	standard := make([]float64, len(values))
	mean := 0.0
	for _, value := range values {
		mean += value
	}
	mean /= float64(len(values))
	deviation := 0.0
	for _, value := range values {
		deviation += float64((value - mean) * (value - mean)) // the conversion prevents a fused multiply-add
	}
	deviation = math.Sqrt(deviation / float64(len(values)))
	if deviation < leastDeviation {
		return standard
	}
	for i, value := range values {
		standard[i] = (value - mean) / deviation
	}
	return standard
}
