package brain

import (
	"context"
	"errors"
)

// NewDocument is a document to store; its path is canonical.
type NewDocument struct {
	Path    string
	Content []byte
	Sidecar Sidecar
}

// Ingest stores and indexes all documents, or none, and returns each one's number of chunks. If a
// path occurs more than once, the last document wins. Its error may be a *Refusal.
func (b *Brain) Ingest(ctx context.Context, documents []NewDocument) ([]int, error) {
	last := make(map[string]int, len(documents))
	for i, doc := range documents {
		last[doc.Path] = i
	}
	var operations []Operation
	var origin []int
	for i := range documents {
		doc := &documents[i]
		if last[doc.Path] == i {
			operations = append(operations,
				Operation{Kind: Write, Path: doc.Path, Content: doc.Content, Sidecar: &doc.Sidecar})
			origin = append(origin, i)
		}
	}
	indexed, err := b.change(ctx, operations, nil)
	var refused *Refusal
	if errors.As(err, &refused) {
		refused.Index = origin[refused.Index]
	}
	if err != nil {
		return nil, err
	}
	chunks := make(map[string]int, len(indexed))
	for _, doc := range indexed {
		chunks[doc.Path] = len(doc.Chunks)
	}
	counts := make([]int, len(documents))
	for i, doc := range documents {
		counts[i] = chunks[doc.Path]
	}
	return counts, nil
}
