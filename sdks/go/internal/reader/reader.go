// Package reader answers questions from retrieved chunks.
package reader

import (
	"context"

	"memoryd/internal/llm"
	"memoryd/internal/prompt"
)

// Question is the input of a reader; Date and Model may be empty.
type Question struct {
	Text  string
	Date  string
	Mode  string
	Model string
	Notes []prompt.Note
}

// Answer is the complete answer, available after all deltas.
type Answer struct {
	Text  string     // the concatenated deltas
	Cited []int      // indexes of notes
	Usage *llm.Usage // nil if unknown
}

// Reader answers questions. Its errors are *problem.Error, the context's, or those of emit.
type Reader interface {
	Read(ctx context.Context, question Question, emit func(delta string) error) (Answer, error)
}
