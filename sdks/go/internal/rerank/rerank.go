// Package rerank scores retrieved chunks again.
package rerank

import (
	"context"

	"memoryd/internal/prompt"
)

// Reranker gives each note a finite score on its own scale; higher is better. Its errors are
// *problem.Error, or the context's.
type Reranker interface {
	// Provider is its name in traces.
	Provider() string
	Scores(ctx context.Context, query string, notes []prompt.Note) ([]float64, error)
}
