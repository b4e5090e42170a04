package rerank

import (
	"context"
	"errors"
	"fmt"

	"memoryd/internal/prompt"
	"memoryd/internal/upstream"
)

// HTTP calls a service with the API that Cohere, Jina and text-embeddings-inference share.
type HTTP struct {
	api   upstream.API
	model string
}

// NewHTTP returns a reranker; with an empty model, requests do not name one.
func NewHTTP(service upstream.Service, url, model string) *HTTP {
	return &HTTP{api: upstream.OpenAI(service, url), model: model}
}

func (*HTTP) Provider() string { return "http" }

func (h *HTTP) Scores(ctx context.Context, query string, notes []prompt.Note) ([]float64, error) {
	var scores []float64
	err := h.api.Call(ctx, func(ctx context.Context) (err error) {
		scores, err = h.call(ctx, query, notes)
		return err
	})
	return scores, err
}

type rerankRequest struct {
	Model     string   `json:"model,omitzero"`
	Query     string   `json:"query"`
	Documents []string `json:"documents"`
	TopN      int      `json:"top_n"`
}

type rerankResult struct {
	Index *int     `json:"index"`
	Score *float64 `json:"relevance_score"`
}

func (h *HTTP) call(ctx context.Context, query string, notes []prompt.Note) ([]float64, error) {
	body := rerankRequest{Model: h.model, Query: query, TopN: len(notes)}
	for _, note := range notes {
		body.Documents = append(body.Documents, note.Text)
	}
	var answer struct {
		Results []rerankResult `json:"results"`
	}
	if err := h.api.PostFor(ctx, "", body, &answer); err != nil {
		return nil, err
	}
	return inOrder(answer.Results, len(notes))
}

// inOrder returns the scores in the order of the notes; each note must have exactly one.
func inOrder(results []rerankResult, notes int) ([]float64, error) {
	if len(results) != notes {
		return nil, fmt.Errorf("%d results for %d documents", len(results), notes)
	}
	scores := make([]float64, notes)
	seen := make([]bool, notes)
	for _, result := range results {
		if result.Index == nil || result.Score == nil {
			return nil, errors.New("a result without index or score")
		}
		index := *result.Index
		if index < 0 || index >= notes || seen[index] {
			return nil, fmt.Errorf("an unexpected result for document %d", index)
		}
		seen[index] = true
		scores[index] = *result.Score
	}
	return scores, nil
}
