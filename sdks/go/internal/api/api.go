// Package api serves the contract's HTTP API: routes, authentication, limits and streams.
package api

import (
	"net/http"
	"time"

	"memoryd/internal/brain"
	"memoryd/internal/files"
	"memoryd/internal/problem"
	"memoryd/internal/reader"
	"memoryd/internal/retrieve"
)

// API holds what the handlers need to serve requests.
type API struct {
	Version   string
	RunID     string // reported by /version; may be empty
	Store     *brain.Store
	Retriever retrieve.Retriever
	Reader    reader.Reader // nil if ask cannot be served

	Token    string // required of every request except health; empty if none is
	Loopback bool   // whether the daemon listens on a loopback address

	// BodyAfter is how long the body of a request may take to arrive; zero means for ever.
	BodyAfter time.Duration

	// Stopping is closed when open streams must end.
	Stopping <-chan struct{}
	// PingAfter is the longest silence of an events stream.
	PingAfter time.Duration
}

// Handler returns the API's handler.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/healthz", reads(a.health))
	mux.Handle("/version", reads(a.version))
	mux.Handle("/v1/brains", reads(a.listBrains).and(http.MethodPost, a.createBrain))
	mux.Handle("/v1/brains/{brain}", reads(a.in(showBrain)).and(http.MethodDelete, a.deleteBrain))
	mux.Handle("/v1/brains/{brain}/ingest/file", methods{http.MethodPost: a.in(ingestFile)})
	mux.Handle("/v1/brains/{brain}/ingest/batch", methods{http.MethodPost: a.ingestBatch})
	mux.Handle("/v1/brains/{brain}/search", methods{http.MethodPost: a.search})
	mux.Handle("/v1/brains/{brain}/ask", methods{http.MethodPost: a.in(a.ask)})
	mux.Handle("/v1/brains/{brain}/documents", methods{
		http.MethodGet: noStore(a.in(listDocuments)), http.MethodHead: noStore(a.at(probeDocument)),
		http.MethodPut: a.at(store(brain.Write)), http.MethodDelete: a.at(deleteDocument),
	})
	mux.Handle("/v1/brains/{brain}/documents/read", reads(noStore(a.at(readDocument))))
	mux.Handle("/v1/brains/{brain}/documents/stat", reads(noStore(a.at(statDocument))))
	mux.Handle("/v1/brains/{brain}/documents/append", methods{http.MethodPost: a.at(store(brain.Append))})
	mux.Handle("/v1/brains/{brain}/documents/rename", methods{http.MethodPost: a.in(renameDocument)})
	mux.Handle("/v1/brains/{brain}/documents/batch-ops", methods{http.MethodPost: a.in(batchDocuments)})
	mux.Handle("/v1/brains/{brain}/events", methods{http.MethodGet: a.in(a.events)})
	mux.Handle("/", methods{})
	return survive(a.hurry(a.authenticate(a.refuseForeign(refuseStrangePaths(limitBody(mux))))))
}

func (a *API) health(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, http.StatusOK, map[string]bool{"ok": true})
}

func (a *API) version(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, http.StatusOK, struct {
		Name     string `json:"name"`
		Version  string `json:"version"`
		Contract string `json:"contract"`
		RunID    string `json:"runId,omitzero"`
	}{"memoryd-go", a.Version, "1", a.RunID})
}

// in is an action in the brain that the path names.
func (a *API) in(act func(w http.ResponseWriter, r *http.Request, b *brain.Brain) error) action {
	return func(w http.ResponseWriter, r *http.Request) error {
		b, err := a.Store.Get(r.Context(), r.PathValue("brain"))
		if err != nil {
			return err
		}
		return act(w, r, b)
	}
}

// at is an action at the path of a document, which most document routes require as a parameter.
func (a *API) at(act func(w http.ResponseWriter, r *http.Request, b *brain.Brain, path string) error) action {
	return a.in(func(w http.ResponseWriter, r *http.Request, b *brain.Brain) error {
		parameters, err := readParameters(r, "path")
		if err != nil {
			return err
		}
		path := parameters["path"]
		if path == "" {
			return problem.Invalid("path: missing")
		}
		if err := files.CheckPath(path); err != nil {
			return err
		}
		return act(w, r, b, path)
	})
}
