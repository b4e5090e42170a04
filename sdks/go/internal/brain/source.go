package brain

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"unicode/utf8"

	"memoryd/internal/chunk"
	"memoryd/internal/files"
	"memoryd/internal/frontmatter"
	"memoryd/internal/index"
	"memoryd/internal/wire"
)

// Sidecar is what an ingest gives beside a document, kept as JSON. Values that were not given are
// nil; an empty list is one.
type Sidecar struct {
	ContentType string      `json:"contentType"`
	Title       *string     `json:"title,omitzero"`
	Tags        []string    `json:"tags,omitzero"`
	Metadata    wire.Object `json:"metadata,omitzero"`
}

// readSidecar takes a missing or unreadable file for one that says nothing: somebody may have put
// the document there by hand.
func readSidecar(file string) (Sidecar, error) {
	var sidecar Sidecar
	encoded, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return sidecar, nil
	}
	if err != nil {
		return sidecar, err
	}
	if wire.Unmarshal(encoded, &sidecar) != nil {
		return Sidecar{}, nil
	}
	return sidecar, nil
}

// understand makes of a document what is indexed. Hidden documents, and bytes that are
// no UTF-8, have no chunks.
func understand(path string, content []byte, sidecar Sidecar) (index.Document, error) {
	var source frontmatter.Document
	if utf8.Valid(content) && !files.IsHidden(path) {
		source = frontmatter.Parse(string(content))
	}
	doc := index.Document{
		Path:     path,
		Title:    sidecar.Title,
		Tags:     sidecar.Tags,
		Metadata: make(wire.Object, len(source.Metadata)+len(sidecar.Metadata)),
		Chunks:   chunk.Split(source.Text),
	}
	if title, ok := source.Metadata["title"].(string); ok && doc.Title == nil {
		doc.Title = &title
	}
	if tags, ok := source.Metadata["tags"].([]string); ok && doc.Tags == nil {
		doc.Tags = tags
	}
	for key, value := range source.Metadata {
		encoded, err := wire.Marshal(value)
		if err != nil {
			return doc, err
		}
		doc.Metadata[key] = encoded
	}
	maps.Copy(doc.Metadata, sidecar.Metadata)
	return doc, nil
}

// embed gives documents the vectors of their chunks, all in one go.
func (b *Brain) embed(ctx context.Context, documents []index.Document) error {
	if b.embedder == nil {
		return nil
	}
	var texts []string
	for _, doc := range documents {
		texts = append(texts, doc.Chunks...)
	}
	if len(texts) == 0 {
		return nil
	}
	vectors, err := b.embedder.Embed(ctx, texts)
	if err != nil {
		return err
	}
	for i := range documents {
		count := len(documents[i].Chunks)
		documents[i].Vectors, vectors = vectors[:count], vectors[count:]
	}
	return nil
}
