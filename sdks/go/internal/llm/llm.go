// Package llm calls language models.
package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"memoryd/internal/wire"
)

var errUnfinished = errors.New("the answer ended prematurely")

// failure is what a piece has in place of a part of the answer.
type failure struct {
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func (f failure) err() error {
	if f.Error == nil {
		return nil
	}
	return fmt.Errorf("failed in the middle of the answer: %s", f.Error.Message)
}

// readPiece decodes the data of an event unless reading it failed; a failure of the service is an error.
func readPiece(data string, failed error, piece interface{ err() error }) error {
	if failed != nil {
		return failed
	}
	if !strings.HasPrefix(strings.TrimSpace(data), "{") {
		return errors.New("a piece of the answer is not an object")
	}
	if err := wire.Unmarshal([]byte(data), piece); err != nil {
		return fmt.Errorf("cannot decode a piece of the answer: %w", err)
	}
	return piece.err()
}

// Prompt is one request to a model.
type Prompt struct {
	Model  string
	System string
	User   string
}

// Usage is the token usage that the service reports.
type Usage struct {
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
}

// Model is a language model service. Its errors are *problem.Error, or the context's.
type Model interface {
	// Stream passes the answer to emit piece by piece; usage is nil if the service reported none.
	// An error of emit ends the request.
	Stream(ctx context.Context, prompt Prompt, emit func(delta string) error) (*Usage, error)
	// Complete returns the whole answer.
	Complete(ctx context.Context, prompt Prompt) (string, error)
}
