package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"memoryd/internal/problem"
)

const (
	// bodyLimit leaves room for titles, tags and metadata besides 8 MiB of content, which are
	// 11.2 MB in base64.
	bodyLimit = 16 << 20

	// drainLimit is how much is read and discarded, so that a client that is still sending sees the
	// 413.
	drainLimit = 4 * bodyLimit
)

// survive turns a panic into a problem.
func survive(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(err)
			}
			slog.ErrorContext(r.Context(), "panic", "stack", string(debug.Stack()))
			fail(w, r, fmt.Errorf("panic: %v", cause))
		}()
		next.ServeHTTP(w, r)
	})
}

// refuseStrangePaths answers 404 to `*` and to paths that would name another route after decoding or
// cleaning; http.ServeMux would redirect some of them.
func refuseStrangePaths(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(strings.ToLower(r.URL.EscapedPath()), "%2f") ||
			!strings.HasPrefix(r.URL.Path, "/") || path.Clean(r.URL.Path) != r.URL.Path {
			fail(w, r, problem.New(problem.NotFound, "no route %s", r.URL.Path))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hurry ends the connection of a request whose body does not arrive in time. limitBody lifts the
// deadline once it has the body, and net/http before the next request.
func (a *API) hurry(next http.Handler) http.Handler {
	if a.BodyAfter == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without a body, net/http already waits for the end of the connection.
		if r.ContentLength != 0 {
			if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(a.BodyAfter)); err != nil {
				fail(w, r, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// limitBody reads the body of every request, up to the limit.
func limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := readBody(r)
		if err != nil {
			fail(w, r, err)
			return
		}
		if r.ContentLength != 0 {
			if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
				fail(w, r, err)
				return
			}
		}
		r.Body = io.NopCloser(body)
		next.ServeHTTP(w, r)
	})
}

func readBody(r *http.Request) (*bytes.Buffer, error) {
	body := new(bytes.Buffer)
	if r.ContentLength > 0 && r.ContentLength <= bodyLimit {
		body.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	read, err := body.ReadFrom(io.LimitReader(r.Body, bodyLimit+1))
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			panic(http.ErrAbortHandler) // the client still sends, and net/http would read on
		}
		return nil, problem.Invalid("cannot read the body: %v", err)
	}
	if read <= bodyLimit {
		return body, nil
	}
	// Draining is best effort: the response is the same if it fails.
	_, _ = io.CopyN(io.Discard, r.Body, drainLimit-bodyLimit)
	return nil, problem.New(problem.TooLarge, "the body exceeds %d bytes", bodyLimit)
}
