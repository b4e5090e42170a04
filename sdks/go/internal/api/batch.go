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
		operation.Content = c.base64("content_base64", wanted[*string](&c, "content_base64", o.Content))
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

func batchDocuments(w http.ResponseWriter, r *http.Request, b *brain.Brain) error {
	var body struct {
		Operations []jsontext.Value `json:"ops"`
		Reason     *string          `json:"reason"`
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
	return reply(w, http.StatusOK, map[string]int{"committed": len(operations)})
}

func readOperations(bodies []jsontext.Value) ([]brain.Operation, error) {
	if len(bodies) == 0 {
		return nil, problem.Invalid("ops: must have at least one operation")
	}
	operations, err := readEach("ops", bodies, operationBody.operation)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, operation := range operations {
		size += len(operation.Content)
	}
	if len(operations) > batchLimit {
		return nil, problem.New(problem.TooLarge, "ops: exceeds %d operations", batchLimit)
	}
	if size > contentLimit {
		return nil, problem.New(problem.TooLarge, "the content exceeds %d bytes", contentLimit)
	}
	return operations, nil
}
