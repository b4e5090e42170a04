package embed

import (
	"strconv"
	"testing"

	"memoryd/internal/vectortest"
)

type hashVectors struct {
	FNV1a32 []struct {
		Text string
		Hash uint32
	}
	Cases []struct {
		Text   string
		Values map[string]float32
	}
}

func TestFNV1a(t *testing.T) {
	var vectors hashVectors
	vectortest.Load(t, "hash", &vectors)
	for _, test := range vectors.FNV1a32 {
		if got := fnv1a(fnvOffset, test.Text); got != test.Hash {
			t.Errorf("fnv1a(%q) = %d, want %d", test.Text, got, test.Hash)
		}
	}
}

func TestFeatureHash(t *testing.T) {
	var vectors hashVectors
	vectortest.Load(t, "hash", &vectors)
	for _, test := range vectors.Cases {
		got, err := FeatureHash{}.Embed(t.Context(), []string{test.Text})
		if err != nil {
			t.Fatal(err)
		}
		for place, value := range got[0] {
			if want := test.Values[strconv.Itoa(place)]; value != want {
				t.Errorf("%.20q: %v at %d, want %v", test.Text, value, place, want)
			}
		}
	}
}
