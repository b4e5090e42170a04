package brain

import (
	"fmt"

	"memoryd/internal/wire"
)

// OperationKind is what an operation does.
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
	To      string   // of Rename
	Content []byte   // of Write and Append
	Sidecar *Sidecar // of Write: replaces the document's; nil keeps it
}

// Refusal says which operation of a change cannot be done, and in its chain why.
type Refusal struct {
	Index int
	Err   error
}

func (r *Refusal) Error() string { return fmt.Sprintf("operation %d: %v", r.Index, r.Err) }

func (r *Refusal) Unwrap() error { return r.Err }

func (s *Sidecar) encode() ([]byte, error) { return wire.Marshal(s) }
