package rerank

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"memoryd/internal/prompt"
	"memoryd/internal/upstream"
	"memoryd/internal/wire"
)

// HTTP calls a service with the API that Cohere, Jina and text-embeddings-inference share.
type HTTP struct {
	service upstream.Service
	client  *retryablehttp.Client
	url     string
	model   string
}

// NewHTTP returns a reranker; with an empty model, requests do not name one.
func NewHTTP(service upstream.Service, url, model string) *HTTP {
	client := retryablehttp.NewClient()
	client.HTTPClient = upstream.Client()
	client.RetryMax = upstream.MaxRetries
	client.RetryWaitMin = 250 * time.Millisecond
	client.RetryWaitMax = 2 * time.Second
	client.ErrorHandler = retryablehttp.PassthroughErrorHandler
	client.Logger = nil
	return &HTTP{service: service, client: client, url: url, model: model}
}

func (*HTTP) Provider() string { return "http" }

func (h *HTTP) Scores(ctx context.Context, query string, notes []prompt.Note) ([]float64, error) {
	var scores []float64
	err := h.service.Call(ctx, func(ctx context.Context) (err error) {
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
	encoded, err := wire.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(encoded))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if h.service.Key != "" {
		request.Header.Set("Authorization", "Bearer "+h.service.Key)
	}
	response, err := h.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answered %s", response.Status)
	}
	var answer struct {
		Results []rerankResult `json:"results"`
	}
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if err := wire.Unmarshal(content, &answer); err != nil {
		return nil, fmt.Errorf("cannot decode the answer: %w", err)
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
