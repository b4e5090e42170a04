package api

import (
	"io"
	"net/http"

	"memoryd/internal/brain"
	"memoryd/internal/problem"
)

// documentLimit is the maximum size of the body of one write, in bytes.
const documentLimit = 2 << 20

// store writes or appends the body.
func store(kind brain.OperationKind) func(http.ResponseWriter, *http.Request, *brain.Brain, string) error {
	return func(w http.ResponseWriter, r *http.Request, b *brain.Brain, path string) error {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		if len(content) > documentLimit {
			return problem.New(problem.TooLarge, "the content exceeds %d bytes", documentLimit)
		}
		return change(w, r, b, brain.Operation{Kind: kind, Path: path, Content: content})
	}
}

func deleteDocument(w http.ResponseWriter, r *http.Request, b *brain.Brain, path string) error {
	return change(w, r, b, brain.Operation{Kind: brain.Delete, Path: path})
}

func renameDocument(w http.ResponseWriter, r *http.Request, b *brain.Brain) error {
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
