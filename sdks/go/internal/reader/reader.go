// Package reader answers questions from retrieved chunks.
package reader

import (
	"context"

	"memoryd/internal/llm"
	"memoryd/internal/prompt"
)

// Question is what a reader gets; Date and Model may be empty.
type Question struct {
	Text  string
	Date  string
	Mode  string
	Model string
	Notes []prompt.Note
}

// Answer is what there is to say once all deltas are out.
type Answer struct {
	Text  string     // the deltas joined
	Cited []int      // indexes of notes
	Usage *llm.Usage // nil where nobody told
}

// Reader answers. Errors are *problem.Error, the context's, or those of emit.
type Reader interface {
	Read(ctx context.Context, question Question, emit func(delta string) error) (Answer, error)
}
