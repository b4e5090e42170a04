package reader

import (
	"cmp"
	"context"
	"strings"

	"memoryd/internal/llm"
	"memoryd/internal/problem"
	"memoryd/internal/prompt"
)

// LLM answers with a language model.
type LLM struct {
	Model        llm.Model
	DefaultModel string // used if the question names none
}

func (r LLM) Read(ctx context.Context, question Question, emit func(string) error) (Answer, error) {
	var said strings.Builder
	usage, err := r.Model.Stream(ctx, llm.Prompt{
		Model:  cmp.Or(question.Model, r.DefaultModel),
		System: prompt.System(question.Mode),
		User:   prompt.User(question.Mode, question.Text, question.Date, question.Notes),
	}, func(delta string) error {
		said.WriteString(delta)
		return emit(delta)
	})
	if err != nil {
		return Answer{}, err
	}
	answer := said.String()
	if strings.TrimSpace(answer) == "" {
		return Answer{}, problem.New(problem.BadGateway, "the model's answer has no text")
	}
	return Answer{Text: answer, Cited: prompt.Cited(answer, len(question.Notes)), Usage: usage}, nil
}
