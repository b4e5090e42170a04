package rank

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"memoryd/internal/vectortest"
)

// scored is `[chunk, score]`.
type scored struct {
	name  string
	score float64
}

func (s *scored) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&s.name, &s.score})
}

type fusionVectors struct {
	Rounding []struct{ Score, Rounded float64 }
	Kernel   []struct {
		Cosine    float64
		InverseL2 float64 `json:"inverse-l2"`
	}
	Cases []struct {
		Keyword, Vector, Fused []scored
		Fusion                 string
		Alpha                  float64
		K                      int
	}
}

func TestRound(t *testing.T) {
	var vectors fusionVectors
	vectortest.Load(t, "fusion", &vectors)
	for _, test := range vectors.Rounding {
		if got := Round(test.Score); got != test.Rounded {
			t.Errorf("Round(%v) = %v, want %v", test.Score, got, test.Rounded)
		}
	}
	if got := Round(1e300); got != 1e300 {
		t.Errorf("Round(1e300) = %v", got)
	}
}

func TestInverseL2(t *testing.T) {
	var vectors fusionVectors
	vectortest.Load(t, "fusion", &vectors)
	if len(vectors.Kernel) == 0 {
		t.Fatal("no vectors")
	}
	for _, test := range vectors.Kernel {
		if got := InverseL2(test.Cosine); got != test.InverseL2 {
			t.Errorf("InverseL2(%v) = %v, want %v", test.Cosine, got, test.InverseL2)
		}
	}
}

// slots numbers chunks in the order of their names, which decides ties.
func slots(leg []scored, names []string) []Hit {
	hits := []Hit{}
	for _, s := range leg {
		hits = append(hits, Hit{slices.Index(names, s.name), s.score})
	}
	return hits
}

func TestFusion(t *testing.T) {
	var vectors fusionVectors
	vectortest.Load(t, "fusion", &vectors)
	for i, test := range vectors.Cases {
		var names []string
		for _, s := range slices.Concat(test.Keyword, test.Vector) {
			names = append(names, s.name)
		}
		slices.Sort(names)
		names = slices.Compact(names)
		keyword, vector := slots(test.Keyword, names), slots(test.Vector, names)
		var got []Hit
		if test.Fusion == "rrf" {
			got = FuseReciprocal(keyword, vector, test.K)
		} else {
			got = FuseMinMax(keyword, vector, test.Alpha)
		}
		got = Best(got, len(got), byScoreAndSlot)
		if want := slots(test.Fused, names); !slices.Equal(got, want) {
			t.Errorf("case %d: %v, want %v", i, got, want)
		}
	}
}

func byScoreAndSlot(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Slot, b.Slot))
}

func TestTiesWithTheLastPlaceAreDecidedByTheOrder(t *testing.T) {
	hits := []Hit{{9, 1}, {3, 1}, {7, 2}, {1, 1}, {5, 0}}
	want := []Hit{{7, 2}, {1, 1}, {3, 1}}
	if got := Best(hits, 3, byScoreAndSlot); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestBestIsTheHeadOfTheSortedHits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		hits := make([]Hit, random.IntN(300))
		for i := range hits {
			hits[i] = Hit{i, float64(random.IntN(40)) - 20}
		}
		limit := 1 + random.IntN(60)
		want := slices.SortedFunc(slices.Values(hits), byScoreAndSlot)
		want = want[:min(len(want), limit)]
		if got := Best(hits, limit, byScoreAndSlot); !slices.Equal(got, want) {
			t.Fatalf("the best %d: got %v, want %v", limit, got, want)
		}
	}
}
