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

// vectors are those of texts that were embedded already. They spare a change that must be drafted
// again from being embedded again.
type vectors map[string]embed.Vector

// lacking lists the chunks without a vector, in order.
func (v vectors) lacking(documents []index.Document) []string {
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

// learn embeds texts, all in one go.
func (v vectors) learn(ctx context.Context, embedder embed.Embedder, texts []string) error {
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

func (v vectors) give(documents []index.Document) {
	for i := range documents {
		doc := &documents[i]
		doc.Vectors = make([]embed.Vector, len(doc.Chunks))
		for n, text := range doc.Chunks {
			doc.Vectors[n] = v[text]
		}
	}
}
