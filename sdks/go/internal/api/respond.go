package api

import (
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"memoryd/internal/problem"
	"memoryd/internal/wire"
)

// action serves a request or returns why it cannot.
type action func(w http.ResponseWriter, r *http.Request) error

// methods maps a path's methods to actions; a path without any does not exist.
type methods map[string]action

// reads are the methods of a path that act answers; net/http drops the body of a response to HEAD.
func reads(act action) methods {
	return methods{http.MethodGet: act, http.MethodHead: act}
}

// noStore forbids caches to keep the response, also if it is a problem.
func noStore(act action) action {
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Cache-Control", "no-store")
		return act(w, r)
	}
}

func (m methods) and(method string, act action) methods {
	m[method] = act
	return m
}

func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	act := m[r.Method]
	if act == nil {
		act = m.refuse
	}
	if err := act(w, r); err != nil {
		fail(w, r, err)
	}
}

func (m methods) refuse(w http.ResponseWriter, r *http.Request) error {
	if len(m) == 0 {
		return problem.New(problem.NotFound, "no route %s", r.URL.Path)
	}
	allowed := strings.Join(slices.Sorted(maps.Keys(m)), ", ")
	w.Header().Set("Allow", allowed)
	return problem.New(problem.MethodNotAllowed, "%s allows %s", r.URL.Path, allowed)
}

func reply(w http.ResponseWriter, status int, body any) error {
	return write(w, status, "application/json", body)
}

func write(w http.ResponseWriter, status int, mediaType string, body any) error {
	encoded, err := wire.Marshal(body)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(encoded)))
	w.WriteHeader(status)
	// A failed write means that the client has disconnected; there is nobody to tell.
	_, _ = w.Write(encoded)
	return nil
}

// fail answers with a problem; nothing may have been written yet.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problem.Of(err)
	status := p.Code.Status()
	if status >= http.StatusInternalServerError && r.Context().Err() == nil {
		level := slog.LevelWarn
		if p.Code == problem.Internal {
			level = slog.LevelError
		}
		slog.Log(r.Context(), level, "request failed",
			"method", r.Method, "path", r.URL.Path, "code", string(p.Code), "error", err)
	}
	_ = write(w, status, problem.MediaType, p.Body()) // cannot fail: strings and a number
}
