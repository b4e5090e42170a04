package retrieve

import (
	"cmp"

	"memoryd/internal/chunk"
	"memoryd/internal/index"
	"memoryd/internal/prompt"
	"memoryd/internal/wire"
)

// Chunk is a retrieved chunk.
type Chunk struct {
	ChunkID    string      `json:"chunkId"`
	DocumentID string      `json:"documentId"`
	Path       string      `json:"path"`
	Score      float64     `json:"score"`
	Text       string      `json:"text"`
	Title      *string     `json:"title,omitzero"`
	Metadata   wire.Object `json:"metadata,omitempty"`

	ordinal int
}

func newChunk(stored index.Chunk, score float64) Chunk {
	document := chunk.DocumentID(stored.Path)
	return Chunk{
		ChunkID:    chunk.ID(document, stored.Ordinal),
		DocumentID: document,
		Path:       stored.Path,
		Score:      score,
		Text:       stored.Text,
		Title:      stored.Title,
		Metadata:   stored.Metadata,
		ordinal:    stored.Ordinal,
	}
}

// Note returns the chunk as it is shown to language models.
func (c Chunk) Note() prompt.Note {
	return prompt.Note{
		Path: c.Path, Text: c.Text, Title: wire.Or(c.Title, ""), Date: wire.Value[string](c.Metadata["date"]),
	}
}

// DisplayTitle returns the title, or the path if there is none.
func (c Chunk) DisplayTitle() string { return cmp.Or(wire.Or(c.Title, ""), c.Path) }

// Notes returns the chunks as they are shown to language models.
func Notes(chunks []Chunk) []prompt.Note {
	notes := make([]prompt.Note, len(chunks))
	for i, c := range chunks {
		notes[i] = c.Note()
	}
	return notes
}
