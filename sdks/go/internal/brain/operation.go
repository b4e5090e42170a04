package brain

import "fmt"

// OperationKind is the kind of an operation.
type OperationKind string

const (
	Write  OperationKind = "write"
	Append OperationKind = "append"
	Delete OperationKind = "delete"
	Rename OperationKind = "rename"
)

// Operation is one step of a change; its paths are canonical.
type Operation struct {
	Kind    OperationKind
	Path    string
	To      string   // for Rename
	Content []byte   // for Write and Append
	Sidecar *Sidecar // for Write: replaces the document's sidecar; nil keeps it
}

// Refusal is the error of an operation that cannot be applied; it wraps the cause.
type Refusal struct {
	Index int
	Err   error
}

func (r *Refusal) Error() string { return fmt.Sprintf("operation %d: %v", r.Index, r.Err) }

func (r *Refusal) Unwrap() error { return r.Err }
