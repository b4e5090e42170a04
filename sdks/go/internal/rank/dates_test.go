package rank

import (
	"encoding/json"
	"testing"
	"time"

	"memoryd/internal/moment"
	"memoryd/internal/vectortest"
)

type dateVectors struct {
	Moments []struct {
		Text    string
		Seconds *int64
	}
	Cases []struct {
		Hits     [][2]json.RawMessage
		Recency  *Recency
		Temporal *Temporal
		Scores   []float64
	}
}

func TestMoments(t *testing.T) {
	var vectors dateVectors
	vectortest.Load(t, "dates", &vectors)
	for _, test := range vectors.Moments {
		got, err := moment.Parse(test.Text)
		if (err == nil) != (test.Seconds != nil) || err == nil && got.Unix() != *test.Seconds {
			t.Errorf("%q: %v, %v", test.Text, got, err)
		}
	}
}

func TestScoresByDate(t *testing.T) {
	var vectors dateVectors
	vectortest.Load(t, "dates", &vectors)
	if len(vectors.Cases) == 0 {
		t.Fatal("no case")
	}
	for i, test := range vectors.Cases {
		hits := make([]Hit, len(test.Hits))
		dates := make([]*time.Time, len(test.Hits))
		for slot, hit := range test.Hits {
			hits[slot].Slot = slot
			var text *string
			if json.Unmarshal(hit[0], &hits[slot].Score) != nil || json.Unmarshal(hit[1], &text) != nil {
				t.Fatalf("case %d: %s", i, hit)
			}
			if text != nil {
				if date, err := moment.Parse(*text); err == nil {
					dates[slot] = &date
				}
			}
		}
		ByDate(hits, dates, test.Recency, test.Temporal)
		for slot, want := range test.Scores {
			if hits[slot] != (Hit{slot, want}) {
				t.Errorf("case %d, hit %d: %v, want %v", i, slot, hits[slot], want)
			}
		}
	}
}
