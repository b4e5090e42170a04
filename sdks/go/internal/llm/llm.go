// Package llm speaks to language models over their vendors' own clients.
package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"memoryd/internal/wire"
)

var errUnfinished = errors.New("the answer ended before its end")

// readPiece reads one piece of a stream; errors come for what is no object, or of other types.
func readPiece(raw string, into any) error {
	if !strings.HasPrefix(strings.TrimSpace(raw), "{") {
		return errors.New("a piece of the answer is no object")
	}
	if err := wire.Unmarshal([]byte(raw), into); err != nil {
		return fmt.Errorf("a piece of the answer cannot be read: %w", err)
	}
	return nil
}

// Prompt is one question to a model.
type Prompt struct {
	Model  string
	System string
	User   string
}

// Usage is what the service says that an answer took.
type Usage struct {
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
}

// Model is a service of language models. Errors are *problem.Error, or the context's.
type Model interface {
	// Stream passes the answer on piece by piece; usage is nil where the service told none. An
	// error of emit ends the request.
	Stream(ctx context.Context, prompt Prompt, emit func(delta string) error) (*Usage, error)
	// Complete returns the whole answer.
	Complete(ctx context.Context, prompt Prompt) (string, error)
}
