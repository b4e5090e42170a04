package brain

import (
	"maps"
	"unicode/utf8"

	"memoryd/internal/chunk"
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
