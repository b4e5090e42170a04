package rank

import (
	"maps"
	"math"
	"math/rand/v2"
	"testing"
)

// reached is the contract's definition: the best of what the places up to four steps away pass on.
func reached(places []Place, scores map[int]float64, at int) float64 {
	best := scores[at]
	for n := 1; n <= 4; n++ {
		for _, from := range []int{at - n, at + n} {
			if from < 0 || from >= len(places) || places[from].Session != places[at].Session {
				continue
			}
			share := 0.6
			if from < at {
				share = 0.7
			}
			best = max(best, math.Pow(share, float64(n))*scores[from])
		}
	}
	return best
}

func TestWordsReachNeighboursOfTheSession(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		places := make([]Place, random.IntN(40)+1)
		for at := 1; at < len(places); at++ {
			places[at].Session = places[at-1].Session
			if random.IntN(5) == 0 {
				places[at].Session++
			}
		}
		words, want := NewWords(places), make([]float64, len(places))
		for times := 1; times < 4; times++ {
			scores := map[int]float64{}
			for range random.IntN(len(places)) {
				scores[random.IntN(len(places))] = random.ExpFloat64()
			}
			words.Add(maps.All(scores), times)
			for at := range places {
				want[at] += float64(times) * reached(places, scores, at)
			}
		}
		for at := range places {
			if got := words.sums[at]; math.Abs(got-want[at]) > 1e-12 || (got == 0) != (want[at] == 0) {
				t.Fatalf("place %d of %v: %v, want %v", at, places, got, want[at])
			}
		}
	}
}

func TestLowestScoresMayBeNegative(t *testing.T) {
	places := []Place{{Slot: 7, Points: 1, Asks: true}, {Slot: 3, Points: 300}, {Slot: 5, Session: 1, Points: 1}}
	words := NewWords(places)
	words.Add(maps.All(map[int]float64{0: 1}), 1)
	got := Conversation(words, nil, []bool{false})
	want := []Hit{{Slot: 7, Score: Round(1 + 2*math.Log(1.0/300) + 1 - 1)}, {Slot: 3, Score: 1.7}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%v, want %v", got, want)
	}
	if best := Best(got, 1, func(a, b Hit) int { return a.Slot - b.Slot }); len(best) != 1 || best[0] != want[1] {
		t.Errorf("the best is %v", best)
	}
}

func TestVectorsAreStandardizedOverAllPlaces(t *testing.T) {
	places := []Place{{Points: 300}, {Slot: 1, Points: 300}, {Slot: 2, Session: 1}}
	for _, test := range []struct {
		cosines []float64
		want    []float64
	}{
		// The deviation is √0.005: z is √2 of the first and −√2/2 of the others.
		{[]float64{0.5, 0.35, 0.35}, []float64{1.4*(math.Sqrt2-math.Sqrt2/4) + 1, 0, -1.4 * math.Sqrt2 / 2}},
		{[]float64{0.5, 0.5, 0.5}, []float64{1, 0, 0}},
		{[]float64{0.5, 0.5 + 1e-9, 0.5}, []float64{1, 0, 0}},
	} {
		hits := Conversation(NewWords(places), test.cosines, []bool{false})
		for slot, want := range test.want {
			if math.Abs(hits[slot].Score-want) > 2e-9 {
				t.Errorf("%v: %v, want %v", test.cosines, hits, test.want)
			}
		}
	}
}
