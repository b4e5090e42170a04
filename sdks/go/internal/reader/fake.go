package reader

import (
	"context"
	"regexp"
	"strings"

	"memoryd/internal/text"
)

const noAnswer = "No information available."

var (
	sentence = regexp.MustCompile(`[^.!?\n]*[.!?\n]|[^.!?\n]+`)
	word     = regexp.MustCompile(`[^ ]+ *`)
)

// Fake answers with the retrieved sentence that shares most terms with the question; of several, the
// first in rank order.
type Fake struct{}

func (Fake) Read(ctx context.Context, question Question, emit func(string) error) (Answer, error) {
	answer := bestSentence(question)
	for _, delta := range word.FindAllString(answer.Text, -1) {
		if err := ctx.Err(); err != nil {
			return Answer{}, err
		}
		if err := emit(delta); err != nil {
			return Answer{}, err
		}
	}
	return answer, nil
}

func bestSentence(question Question) Answer {
	wanted := text.Set(text.WithoutStopWords(text.Terms(question.Text)))
	best, bestScore := Answer{Text: noAnswer}, 0
	for i, note := range question.Notes {
		for _, candidate := range sentence.FindAllString(note.Text, -1) {
			if score := shared(wanted, candidate); score > bestScore {
				best, bestScore = Answer{Text: strings.Trim(candidate, " \t\r\n\f\v"), Cited: []int{i}}, score
			}
		}
	}
	return best
}

func shared(wanted map[string]bool, candidate string) int {
	if len(wanted) == 0 {
		return 0
	}
	score := 0
	for term := range text.Set(text.Terms(candidate)) {
		if wanted[term] {
			score++
		}
	}
	return score
}
