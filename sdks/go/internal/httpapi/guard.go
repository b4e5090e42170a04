package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"strings"

	"memoryd/internal/problem"
)

const (
	// bodyLimit leaves room for titles, tags and metadata beside 8 MiB in base64, which are 11.2.
	bodyLimit = 16 << 20

	// drainLimit is what is read and thrown away, so that a client which still sends gets to see
	// the 413.
	drainLimit = 4 * bodyLimit
)

// survive makes a problem of a panic.
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

// refuseStrangePaths answers 404 to paths that, decoded or cleaned, would name another route than
// the one sent, and to `*`; http.ServeMux would redirect some of them.
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

// limitBody reads every body, wherever it is sent, up to the limit.
func limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := readBody(r)
		if err != nil {
			fail(w, r, err)
			return
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
		return nil, problem.Invalid("the body cannot be read: %v", err)
	}
	if read <= bodyLimit {
		return body, nil
	}
	// Whether all of it could be drained changes nothing.
	_, _ = io.CopyN(io.Discard, r.Body, drainLimit-bodyLimit)
	return nil, problem.New(problem.TooLarge, "more than %d bytes of body", bodyLimit)
}
