package text

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"memoryd/internal/vectortest"
)

func TestTerms(t *testing.T) {
	var vectors struct {
		Cases []struct {
			Text  string
			Terms []string
		}
	}
	vectortest.Load(t, "terms", &vectors)
	for _, test := range vectors.Cases {
		if got := Terms(test.Text); !slices.Equal(got, test.Terms) {
			t.Errorf("Terms(%q) = %q, want %q", test.Text, got, test.Terms)
		}
	}
}

func TestQueryUsesItsFirst256Terms(t *testing.T) {
	var words []string
	for n := range 400 {
		words = append(words, fmt.Sprintf("word%d", n))
	}
	if got := QueryTerms(strings.Join(words, " ")); !slices.Equal(got, words[:256]) {
		t.Errorf("got %d terms, the last is %q", len(got), got[len(got)-1])
	}
}

func TestLower(t *testing.T) {
	long := strings.Repeat("хлеб ", 40)
	for text, want := range map[string]string{
		"PLAIN":          "plain",
		"İZMİR":          "i̇zmi̇r",
		"Σ":              "σ",
		"ΑΣ":             "ας",
		"ΑΣ.":            "ας.",
		"ΑΣ'Α":           "ασ'α",
		"Α\u0301Σ\u00AD": "α\u0301ς\u00AD",
		"ΣΣ Σ":           "σς σ",
		long + "ΟΔΟΣ κ":  long + "οδος κ",
	} {
		if got := lower(text); got != want {
			t.Errorf("lower(%q) = %q, want %q", text, got, want)
		}
	}
}
