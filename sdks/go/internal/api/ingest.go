package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"memoryd/internal/brain"
	"memoryd/internal/chunk"
	"memoryd/internal/problem"
	"memoryd/internal/retrieve"
	"memoryd/internal/wire"
)

const (
	contentLimit = 8 << 20 // decoded bytes that one request may carry
	batchLimit   = 1024    // documents in one batch
)

type documentBody struct {
	Path          *string        `json:"path"`
	ContentType   *string        `json:"contentType"`
	ContentBase64 *string        `json:"contentBase64"`
	Title         *string        `json:"title"`
	Tags          wire.Texts     `json:"tags"`
	Metadata      jsontext.Value `json:"metadata"`
}

func (d documentBody) document() (brain.NewDocument, error) {
	var c checker
	doc := brain.NewDocument{
		Path: c.required("path", d.Path),
		Sidecar: brain.Sidecar{
			ContentType: c.required("contentType", d.ContentType),
			Title:       d.Title,
			Tags:        d.Tags,
			Metadata:    c.object("metadata", d.Metadata),
		},
		Content: c.base64("contentBase64", d.ContentBase64),
	}
	c.path("path", d.Path) // after what is missing
	return doc, c.err
}

type documentStored struct {
	DocumentID string  `json:"documentId"`
	Path       string  `json:"path"`
	ChunkCount int     `json:"chunkCount"`
	Bytes      int     `json:"bytes"`
	TookMs     float64 `json:"tookMs"`
}

func ingestFile(w http.ResponseWriter, r *http.Request, b *brain.Brain) error {
	var body documentBody
	if err := decode(r, &body); err != nil {
		return err
	}
	doc, err := body.document()
	if err != nil {
		return err
	}
	stored, err := ingest(r.Context(), b, []brain.NewDocument{doc})
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, stored[0])
}

func (a *API) ingestBatch(w http.ResponseWriter, r *http.Request) error {
	started := time.Now()
	b, err := a.Store.Get(r.Context(), r.PathValue("brain"))
	if err != nil {
		return err
	}
	var body struct {
		Documents []jsontext.Value `json:"documents"`
	}
	if err := decode(r, &body); err != nil {
		return err
	}
	if len(body.Documents) < 1 || len(body.Documents) > batchLimit {
		return problem.Invalid("documents: must have 1 to %d documents", batchLimit)
	}
	documents, err := readEach("documents", body.Documents, documentBody.document)
	if err != nil {
		return err
	}
	stored, err := ingest(r.Context(), b, documents)
	if err != nil {
		return named(err, "documents")
	}
	return reply(w, http.StatusOK, struct {
		Items  []documentStored `json:"items"`
		TookMs float64          `json:"tookMs"`
	}{stored, retrieve.Milliseconds(time.Since(started))})
}

// named adds the index of the refused operation to the detail of an error.
func named(err error, list string) error {
	var refused *brain.Refusal
	if !errors.As(err, &refused) || problem.Of(err).Code == problem.Internal {
		return err
	}
	return problem.New(problem.Of(err).Code, "%s[%d]: %s", list, refused.Index, problem.Of(err).Detail)
}

func ingest(ctx context.Context, b *brain.Brain, documents []brain.NewDocument) ([]documentStored, error) {
	started := time.Now()
	size := 0
	for _, doc := range documents {
		size += len(doc.Content)
	}
	if size > contentLimit {
		return nil, problem.New(problem.TooLarge, "the content exceeds %d bytes", contentLimit)
	}
	chunks, err := b.Ingest(ctx, documents)
	if err != nil {
		return nil, err
	}
	each := retrieve.Milliseconds(time.Since(started) / time.Duration(len(documents)))
	stored := make([]documentStored, len(documents))
	for i, doc := range documents {
		stored[i] = documentStored{
			DocumentID: chunk.DocumentID(doc.Path),
			Path:       doc.Path,
			ChunkCount: chunks[i],
			Bytes:      len(doc.Content),
			TookMs:     each,
		}
	}
	return stored, nil
}
