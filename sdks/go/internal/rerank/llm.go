package rerank

import (
	"context"

	"memoryd/internal/llm"
	"memoryd/internal/problem"
	"memoryd/internal/prompt"
)

// LLM scores notes with a language model.
type LLM struct {
	Model     llm.Model
	ModelName string
}

func (LLM) Provider() string { return "llm" }

func (r LLM) Scores(ctx context.Context, query string, notes []prompt.Note) ([]float64, error) {
	reply, err := r.Model.Complete(ctx, llm.Prompt{
		Model:  r.ModelName,
		System: prompt.RerankSystem,
		User:   prompt.User(prompt.Basic, query, "", notes),
	})
	if err != nil {
		return nil, err
	}
	scores, err := prompt.Scores(reply, len(notes))
	if err != nil {
		return nil, problem.New(problem.BadGateway, "reranker llm: %v", err)
	}
	return scores, nil
}
