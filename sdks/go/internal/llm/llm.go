// Package llm calls language models through their vendors' clients.
package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"memoryd/internal/wire"
)

var errUnfinished = errors.New("the answer ended prematurely")

// readPiece decodes one piece of a stream; it fails if the piece is not an object of the expected
// types.
func readPiece(raw string, into any) error {
	if !strings.HasPrefix(strings.TrimSpace(raw), "{") {
		return errors.New("a piece of the answer is not an object")
	}
	if err := wire.Unmarshal([]byte(raw), into); err != nil {
		return fmt.Errorf("cannot decode a piece of the answer: %w", err)
	}
	return nil
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
