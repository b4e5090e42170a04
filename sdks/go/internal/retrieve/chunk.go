package retrieve

import (
	"cmp"

	"memoryd/internal/chunk"
	"memoryd/internal/index"
	"memoryd/internal/prompt"
	"memoryd/internal/wire"
)

// Chunk is a chunk that was found.
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

// Note is the chunk as language models get to see it.
func (c Chunk) Note() prompt.Note {
	note := prompt.Note{Path: c.Path, Text: c.Text, Title: or(c.Title, "")}
	if wire.Unmarshal(c.Metadata["date"], &note.Date) != nil {
		note.Date = ""
	}
	return note
}

// DisplayTitle is the title or else the path.
func (c Chunk) DisplayTitle() string { return cmp.Or(or(c.Title, ""), c.Path) }

// Notes are the chunks as language models get to see them.
func Notes(chunks []Chunk) []prompt.Note {
	notes := make([]prompt.Note, len(chunks))
	for i, c := range chunks {
		notes[i] = c.Note()
	}
	return notes
}
