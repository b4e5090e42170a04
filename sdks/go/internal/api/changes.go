package api

import (
	"io"
	"net/http"

	"memoryd/internal/brain"
	"memoryd/internal/problem"
)

// documentLimit is the maximum size of the body of one write, in bytes.
const documentLimit = 2 << 20

func (a *API) writeDocument(w http.ResponseWriter, r *http.Request) error {
	return a.store(w, r, brain.Write)
}

func (a *API) appendDocument(w http.ResponseWriter, r *http.Request) error {
	return a.store(w, r, brain.Append)
}

// store writes or appends the body.
func (a *API) store(w http.ResponseWriter, r *http.Request, kind brain.OperationKind) error {
	b, path, err := a.located(r)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if len(content) > documentLimit {
		return problem.New(problem.TooLarge, "the content exceeds %d bytes", documentLimit)
	}
	return change(w, r, b, brain.Operation{Kind: kind, Path: path, Content: content})
}

func (a *API) deleteDocument(w http.ResponseWriter, r *http.Request) error {
	b, path, err := a.located(r)
	if err != nil {
		return err
	}
	return change(w, r, b, brain.Operation{Kind: brain.Delete, Path: path})
}

func (a *API) renameDocument(w http.ResponseWriter, r *http.Request) error {
	b, err := a.brain(r)
	if err != nil {
		return err
	}
	var body struct {
		From *string `json:"from"`
		To   *string `json:"to"`
	}
	if err := decode(r, &body); err != nil {
		return err
	}
	var c checker
	operation := brain.Operation{Kind: brain.Rename, Path: c.path("from", body.From), To: c.path("to", body.To)}
	if c.err != nil {
		return c.err
	}
	return change(w, r, b, operation)
}

// change commits one operation.
func change(w http.ResponseWriter, r *http.Request, b *brain.Brain, operation brain.Operation) error {
	if err := b.Change(r.Context(), []brain.Operation{operation}, nil); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
