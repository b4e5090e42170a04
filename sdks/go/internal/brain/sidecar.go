package brain

import (
	"errors"
	"maps"

	"github.com/go-json-experiment/json/jsontext"

	"memoryd/internal/wire"
)

// Sidecar holds what an ingest request states about a document, stored as JSON. Omitted values are
// nil, unlike empty lists.
type Sidecar struct {
	ContentType string      `json:"contentType"`
	Title       *string     `json:"title,omitzero"`
	Tags        wire.Texts  `json:"tags,omitzero"`
	Metadata    wire.Object `json:"metadata,omitzero"`
}

// sidecarOf returns the path of a document's sidecar, relative to the root of the sidecars.
func sidecarOf(path string) string { return path + ".json" }

// parseSidecar decodes a sidecar and ignores values that an ingest could not have written, because
// the file may have been edited by hand. A missing file is an empty sidecar.
func parseSidecar(encoded []byte) Sidecar {
	var object wire.Object
	if wire.Unmarshal(encoded, &object) != nil {
		return Sidecar{}
	}
	sidecar := Sidecar{
		ContentType: wire.Value[string](object["contentType"]),
		Title:       wire.Value[*string](object["title"]),
		Tags:        wire.Value[wire.Texts](object["tags"]),
		Metadata:    wire.Value[wire.Object](object["metadata"]),
	}
	maps.DeleteFunc(sidecar.Metadata, func(_ string, value jsontext.Value) bool {
		return errors.Join(wire.CheckDepth(value), wire.CheckNumbers(value)) != nil
	})
	return sidecar
}
