package prompt

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"memoryd/internal/wire"
)

var (
	reference = regexp.MustCompile(`\[[0-9]+(?: *, *[0-9]+)*\]`)
	number    = regexp.MustCompile(`[0-9]+`)
)

// Cited returns the indexes, from 0, of the notes that an answer cites as [1] or [1, 3], in the order
// of their first citation; it ignores numbers without a note.
func Cited(answer string, notes int) []int {
	var cited []int
	for _, list := range reference.FindAllString(answer, -1) {
		for _, digits := range number.FindAllString(list, -1) {
			n, err := strconv.Atoi(digits)
			if err == nil && 1 <= n && n <= notes && !slices.Contains(cited, n-1) {
				cited = append(cited, n-1)
			}
		}
	}
	return cited
}

// Scores parses the reply of a model that was asked to score this many notes.
func Scores(reply string, notes int) ([]float64, error) {
	start, end := strings.IndexByte(reply, '{'), strings.LastIndexByte(reply, '}')
	if start < 0 || end < start {
		return nil, errors.New("the reply contains no JSON object")
	}
	var body struct {
		// Pointers distinguish null from 0.
		Scores []*float64 `json:"scores"`
	}
	object := []byte(reply[start : end+1])
	if err := wire.Unmarshal(object, &body); err != nil {
		return nil, fmt.Errorf("cannot decode the reply: %w", err)
	}
	if len(body.Scores) != notes {
		return nil, fmt.Errorf("%d scores for %d notes", len(body.Scores), notes)
	}
	scores := make([]float64, notes)
	for i, score := range body.Scores {
		if score == nil {
			return nil, errors.New("a score is null")
		}
		scores[i] = *score
	}
	return scores, nil
}
