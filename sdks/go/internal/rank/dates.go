package rank

import (
	"math"
	"time"

	"memoryd/internal/moment"
)

// Recency is tuning.recency: scores rise with the recency of documents.
type Recency struct {
	Now       string  `json:"now"`
	Relevance float64 `json:"relevance"`
	Weight    float64 `json:"weight"`
	DecayDays float64 `json:"decayDays"`
}

// Temporal is tuning.temporal: scores rise for documents that are dated near a target.
type Temporal struct {
	At            string  `json:"at"`
	ToleranceDays float64 `json:"toleranceDays"`
	Boost         float64 `json:"boost"`
}

// ByDate scores fused hits again by the dates of their documents; nil means no date. Recency and
// temporal may be nil. The dates in them must be valid.
func ByDate(hits []Hit, dates []*time.Time, recency *Recency, temporal *Temporal) {
	best := 0.0
	for _, hit := range hits {
		best = max(best, hit.Score)
	}
	for i, date := range dates {
		score := 0.0
		if best > 0 {
			score = hits[i].Score / best
		}
		// The conversions prevent a fused multiply-add.
		if recency != nil {
			score = Round(float64(recency.Relevance*score) + float64(recency.Weight*recency.decay(date)))
		}
		if temporal != nil {
			score = Round(score * (1 + float64(temporal.Boost*temporal.proximity(date))))
		}
		hits[i].Score = score
	}
}

// decay is 1 for a document of now or later, and 1/e for one that is DecayDays old.
func (r Recency) decay(date *time.Time) float64 {
	if date == nil {
		return 0
	}
	// Rounded, because languages differ in the last bit of an exponential.
	return Round(math.Exp(-max(0, daysFrom(*date, r.Now)) / r.DecayDays))
}

// proximity is 1 within the tolerance of the target, falling to 0 at three times the tolerance.
func (t Temporal) proximity(date *time.Time) float64 {
	if date == nil {
		return 0
	}
	distance := math.Abs(daysFrom(*date, t.At))
	return min(1, max(0, 1-(distance-t.ToleranceDays)/(2*t.ToleranceDays)))
}

// daysFrom returns the days from a date to a valid moment, without fractions of a second.
func daysFrom(date time.Time, to string) float64 {
	end, _ := moment.Parse(to)
	return float64(end.Unix()-date.Unix()) / 86_400
}
