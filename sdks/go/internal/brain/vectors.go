package brain

import (
	"context"

	"memoryd/internal/embed"
	"memoryd/internal/index"
)

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
