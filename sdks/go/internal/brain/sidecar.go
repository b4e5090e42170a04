package brain

import (
	"errors"
	"maps"

	"github.com/go-json-experiment/json/jsontext"

	"memoryd/internal/wire"
)

// Sidecar is what an ingest gives beside a document, kept as JSON. Values that were not given are
// nil; an empty list is one.
type Sidecar struct {
	ContentType string      `json:"contentType"`
	Title       *string     `json:"title,omitzero"`
	Tags        wire.Texts  `json:"tags,omitzero"`
	Metadata    wire.Object `json:"metadata,omitzero"`
}

// sidecarOf is where the sidecar of a document lies, below another root.
func sidecarOf(path string) string { return path + ".json" }

// parseSidecar leaves out what could not have come by an ingest: somebody may have written the file
// by hand. No file at all says nothing.
func parseSidecar(encoded []byte) Sidecar {
	var given wire.Object
	if wire.Unmarshal(encoded, &given) != nil {
		return Sidecar{}
	}
	sidecar := Sidecar{
		ContentType: valueOf[string](given["contentType"]),
		Title:       valueOf[*string](given["title"]),
		Tags:        valueOf[wire.Texts](given["tags"]),
		Metadata:    valueOf[wire.Object](given["metadata"]),
	}
	maps.DeleteFunc(sidecar.Metadata, func(_ string, value jsontext.Value) bool {
		return errors.Join(wire.CheckDepth(value), wire.CheckNumbers(value)) != nil
	})
	return sidecar
}

// valueOf is the zero value where the JSON is missing or of another type.
func valueOf[T any](raw jsontext.Value) T {
	var value T
	if wire.Unmarshal(raw, &value) != nil {
		var none T
		return none
	}
	return value
}
