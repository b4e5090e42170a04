// Package upstream is shared by all calls to model services: a watchdog on their silence, and errors
// that never contain a key.
package upstream

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"memoryd/internal/problem"
)

// maxRetries is how often a request is retried, as long as none of its answer has been forwarded.
const maxRetries = 2

// messageLimit truncates a service's error message; some answer with whole pages.
const messageLimit = 400

// Service describes one model service to Call.
type Service struct {
	Name    string        // its name in errors
	Key     string        // removed from every message
	Timeout time.Duration // the longest silence
}

// Call runs one request with all its retries. The context passed to do ends when the service is
// silent for too long. The error is a *problem.Error, or the context's if the caller has gone.
func (s Service) Call(ctx context.Context, do func(ctx context.Context) error) error {
	watched, stop := watch(ctx, s.Timeout)
	defer stop()
	err := do(watched)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(context.Cause(watched), errSilent):
		return problem.New(problem.Timeout, "%s: silent for %s", s.Name, s.Timeout)
	default:
		return problem.New(problem.BadGateway, "%s: %s", s.Name, s.describe(err))
	}
}

func (s Service) describe(err error) string {
	// A URL may contain a password or a token.
	var addressed *url.Error
	if errors.As(err, &addressed) {
		err = addressed.Err
	}
	message := err.Error()
	if s.Key != "" {
		message = strings.ReplaceAll(message, s.Key, "***")
	}
	message = strings.TrimSpace(strings.ToValidUTF8(message[:min(len(message), messageLimit)], ""))
	if message == "" {
		return "failed without a word"
	}
	return message
}
