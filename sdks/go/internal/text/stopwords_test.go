package text

import (
	"maps"
	"slices"
	"testing"

	"memoryd/internal/vectortest"
)

func TestStopWords(t *testing.T) {
	var vectors struct {
		StopWords []string `json:"stop_words"`
	}
	vectortest.Load(t, "reader", &vectors)
	if got := slices.Sorted(maps.Keys(stopWords)); !slices.Equal(got, vectors.StopWords) {
		t.Errorf("stop words: %v", got)
	}
	terms := []string{"where", "lake", "the", "lake"}
	if got := WithoutStopWords(terms); !slices.Equal(got, []string{"lake", "lake"}) || terms[0] != "where" {
		t.Errorf("%q of %q", got, terms)
	}
}
