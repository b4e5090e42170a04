package brain

import (
	"context"
	"maps"
	"unicode/utf8"

	"memoryd/internal/chunk"
	"memoryd/internal/embed"
	"memoryd/internal/files"
	"memoryd/internal/frontmatter"
	"memoryd/internal/index"
	"memoryd/internal/wire"
)

// parseDocument turns a document into its index entry. Hidden documents and those that are not
// UTF-8 have no chunks.
func parseDocument(path string, content []byte, sidecar Sidecar) (index.Document, error) {
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

// vectors caches embedded texts, so that a change drafted again is not embedded again.
type vectors map[string]embed.Vector

// missing lists the chunks without a vector, in order.
func (v vectors) missing(documents []index.Document) []string {
	var texts []string
	for _, doc := range documents {
		for _, text := range doc.Chunks {
			if _, known := v[text]; !known {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// embed embeds all texts with one call and adds their vectors.
func (v vectors) embed(ctx context.Context, embedder embed.Embedder, texts []string) error {
	if len(texts) == 0 {
		return nil
	}
	embedded, err := embedder.Embed(ctx, texts)
	if err != nil {
		return err
	}
	for i, text := range texts {
		v[text] = embedded[i]
	}
	return nil
}

// assign sets the vectors of all documents.
func (v vectors) assign(documents []index.Document) {
	for i := range documents {
		doc := &documents[i]
		doc.Vectors = make([]embed.Vector, len(doc.Chunks))
		for n, text := range doc.Chunks {
			doc.Vectors[n] = v[text]
		}
	}
}
