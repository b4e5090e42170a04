// Package rerank judges retrieved chunks anew.
package rerank

import (
	"context"

	"memoryd/internal/prompt"
)

// Reranker gives each note a finite score of its own scale, higher for better. Errors are
// *problem.Error, or the context's.
type Reranker interface {
	// Provider is what traces call it.
	Provider() string
	Scores(ctx context.Context, query string, notes []prompt.Note) ([]float64, error)
}
