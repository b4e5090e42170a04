// Package upstream is what all calls to model services share: a watchdog on their silence, and
// failures in words that hold no key.
package upstream

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"memoryd/internal/problem"
)

// MaxRetries is how often a request is tried again while nothing of its answer was passed on.
const MaxRetries = 2

// messageLimit cuts what a service says of itself; some answer with whole pages.
const messageLimit = 400

// Service is one model service as its callers know it.
type Service struct {
	Name    string        // what errors call it
	Key     string        // kept out of every message
	Timeout time.Duration // the longest silence
}

// Call runs one request with all its retries. The context that do gets ends when the service is
// silent for too long. An error is a *problem.Error, or the context's own where the caller is gone.
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
	// An address may carry a password or a token.
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

// Client is an HTTP client whose answers keep the watchdog of Call awake.
func Client() *http.Client {
	return &http.Client{Transport: listening{http.DefaultTransport}}
}
