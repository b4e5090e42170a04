package prompt

import (
	"slices"
	"testing"

	"memoryd/internal/vectortest"
)

type promptVectors struct {
	System       map[string]string
	RerankSystem string
	Cases        []struct {
		Question, QuestionDate, ReaderMode, User string
		Chunks                                   []struct {
			Path, Text, Title string
			Metadata          struct{ Date any }
		}
	}
	Citations []struct {
		Answer string
		Notes  int
		Cited  []int
	}
	Replies []struct {
		Reply     string
		Documents int
		Scores    []float64
	}
}

func load(t *testing.T) promptVectors {
	var vectors promptVectors
	vectortest.Load(t, "prompt", &vectors)
	return vectors
}

func TestSystemMessages(t *testing.T) {
	vectors := load(t)
	for mode, want := range vectors.System {
		if got := System(mode); got != want {
			t.Errorf("System(%s) = %q", mode, got)
		}
	}
	if RerankSystem != vectors.RerankSystem {
		t.Errorf("RerankSystem = %q", RerankSystem)
	}
}

func TestUserMessages(t *testing.T) {
	for _, test := range load(t).Cases {
		var notes []Note
		for _, c := range test.Chunks {
			date, _ := c.Metadata.Date.(string)
			notes = append(notes, Note{Path: c.Path, Title: c.Title, Date: date, Text: c.Text})
		}
		if got := User(test.ReaderMode, test.Question, test.QuestionDate, notes); got != test.User {
			t.Errorf("got %q, want %q", got, test.User)
		}
	}
}

func TestCitations(t *testing.T) {
	for _, test := range load(t).Citations {
		if got := Cited(test.Answer, test.Notes); !slices.Equal(got, test.Cited) {
			t.Errorf("Cited(%q, %d) = %v, want %v", test.Answer, test.Notes, got, test.Cited)
		}
	}
}

func TestScores(t *testing.T) {
	for _, test := range load(t).Replies {
		got, err := Scores(test.Reply, test.Documents)
		if !slices.Equal(got, test.Scores) || (err == nil) != (test.Scores != nil) {
			t.Errorf("Scores(%q, %d) = %v, %v, want %v", test.Reply, test.Documents, got, err, test.Scores)
		}
	}
}
