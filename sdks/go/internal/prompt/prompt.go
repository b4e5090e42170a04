// Package prompt builds the prompts for language models and parses their answers.
package prompt

import (
	"fmt"
	"strings"
)

const (
	// Basic and Augmented are the contract's reader modes.
	Basic     = "basic"
	Augmented = "augmented"
)

const (
	basicSystem = "You answer questions from notes. Use only what the notes say, in as few words as " +
		"possible. After each fact, cite its note, as [1]. If the notes do not say, answer exactly: " +
		"No information available."
	augmentedSystem = basicSystem + " The notes may describe different times and contradict each other: " +
		"order them by date, relative to the question's date, and trust the latest."

	// RerankSystem is the system message of the reranker.
	RerankSystem = "You judge how well each note answers a question. Reply with nothing but a JSON " +
		"object {\"scores\": [...]}, one number from 0 to 10 for each note, in the order of the notes."
)

// Note is a chunk as it is shown to a model; title and date may be empty.
type Note struct {
	Path  string
	Title string
	Date  string
	Text  string
}

// System returns the reader's system message.
func System(mode string) string {
	if mode == Augmented {
		return augmentedSystem
	}
	return basicSystem
}

// User returns the user message of the reader and of the reranker; date may be empty.
func User(mode, question, date string, notes []Note) string {
	var message strings.Builder
	message.WriteString("Notes:")
	if len(notes) == 0 {
		message.WriteString(" none")
	}
	for i, note := range notes {
		fmt.Fprintf(&message, "\n\n[%d] %s", i+1, note.Path)
		if mode == Augmented {
			message.WriteString(note.aside())
		}
		message.WriteString("\n" + note.Text)
	}
	message.WriteString("\n\n")
	if date != "" {
		message.WriteString("Date of the question: " + date + "\n")
	}
	message.WriteString("Question: " + question)
	return message.String()
}

// aside returns ` (title, date)`, with the parts that the note has.
func (n Note) aside() string {
	var known []string
	for _, part := range []string{n.Title, n.Date} {
		if part != "" {
			known = append(known, part)
		}
	}
	if len(known) == 0 {
		return ""
	}
	return " (" + strings.Join(known, ", ") + ")"
}
