package api

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"memoryd/internal/brain"
	"memoryd/internal/problem"
	"memoryd/internal/wire"
)

type operationBody struct {
	Type *string `json:"type"`
	Path *string `json:"path"`
	// Decoded only for the operations that use them; otherwise they may be anything.
	To      jsontext.Value `json:"to"`
	Content jsontext.Value `json:"content_base64"`
}

func (o operationBody) operation() (brain.Operation, error) {
	var c checker
	c.required("type", o.Type)
	operation := brain.Operation{
		Kind: brain.OperationKind(c.oneOf("type", o.Type,
			string(brain.Write), string(brain.Append), string(brain.Delete), string(brain.Rename))),
		Path: c.path("path", o.Path),
	}
	switch operation.Kind {
	case brain.Rename:
		operation.To = c.path("to", wanted[*string](&c, "to", o.To))
	case brain.Write, brain.Append:
		if operation.Content = wanted[wire.Bytes](&c, "content_base64", o.Content); operation.Content == nil {
			c.refuse("content_base64: missing")
		}
	}
	return operation, c.err
}

// wanted is nil where the key is missing or null.
func wanted[T any](c *checker, key string, raw jsontext.Value) (value T) {
	if raw != nil && wire.Unmarshal(raw, &value) != nil {
		c.refuse("%s: cannot be read as what it must be", key)
	}
	return value
}

func (a *API) batchDocuments(w http.ResponseWriter, r *http.Request) error {
	b, err := a.brain(r)
	if err != nil {
		return err
	}
	var body struct {
		Operations []operationBody `json:"ops"`
		Reason     *string         `json:"reason"`
		// For daemons that keep a history; this one only validates them.
		Message *string `json:"message"`
		Author  *string `json:"author"`
		Email   *string `json:"email"`
	}
	if err := decode(r, &body); err != nil {
		return err
	}
	var c checker
	c.short("reason", body.Reason)
	c.short("message", body.Message)
	c.short("author", body.Author)
	c.short("email", body.Email)
	if c.err != nil {
		return c.err
	}
	operations, err := readOperations(body.Operations)
	if err != nil {
		return err
	}
	if err := b.Change(r.Context(), operations, body.Reason); err != nil {
		return named(err, "ops")
	}
	return reply(w, http.StatusOK, struct {
		Committed int `json:"committed"`
	}{len(operations)})
}

func readOperations(bodies []operationBody) ([]brain.Operation, error) {
	if len(bodies) == 0 {
		return nil, problem.Invalid("ops: must have at least one operation")
	}
	operations := make([]brain.Operation, len(bodies))
	size := 0
	for i, body := range bodies {
		var err error
		if operations[i], err = body.operation(); err != nil {
			return nil, problem.Invalid("ops[%d].%s", i, problem.Of(err).Detail)
		}
		size += len(operations[i].Content)
	}
	if len(operations) > batchLimit {
		return nil, problem.New(problem.TooLarge, "ops: exceeds %d operations", batchLimit)
	}
	if size > contentLimit {
		return nil, problem.New(problem.TooLarge, "the content exceeds %d bytes", contentLimit)
	}
	return operations, nil
}
