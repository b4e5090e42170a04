package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

var errSilent = errors.New("the service is silent")

type watchdogKey struct{}

// watchdog cancels a context when no data has arrived for its limit.
type watchdog struct {
	timer *time.Timer
	limit time.Duration
}

func watch(parent context.Context, limit time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	dog := &watchdog{limit: limit, timer: time.AfterFunc(limit, func() { cancel(errSilent) })}
	return context.WithValue(ctx, watchdogKey{}, dog), func() {
		dog.timer.Stop()
		cancel(nil)
	}
}

// listening re-arms the watchdog of a request's context with each piece of a successful response.
// Responses that will be retried do not count: the limit applies to all attempts together.
type listening struct{ next http.RoundTripper }

func (l listening) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	dog, watched := request.Context().Value(watchdogKey{}).(*watchdog)
	if watched && response.StatusCode < http.StatusBadRequest {
		response.Body = &heard{ReadCloser: response.Body, dog: dog}
	}
	return response, nil
}

type heard struct {
	io.ReadCloser
	dog *watchdog
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	// A timer that has fired is not re-armed: its context has ended.
	if n > 0 && h.dog.timer.Stop() {
		h.dog.timer.Reset(h.dog.limit)
	}
	return n, err
}

// Passing wraps emit so that its duration does not count as silence: the client may read slowly.
func Passing(ctx context.Context, emit func(string) error) func(string) error {
	dog, watched := ctx.Value(watchdogKey{}).(*watchdog)
	if !watched {
		return emit
	}
	return func(delta string) error {
		if !dog.timer.Stop() {
			return context.Cause(ctx)
		}
		defer dog.timer.Reset(dog.limit)
		return emit(delta)
	}
}
