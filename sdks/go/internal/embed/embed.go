// Package embed turns text into unit vectors.
package embed

import (
	"context"
	"math"
)

// Vector has length 1, or is all zeros if there was nothing to embed.
type Vector []float32

// Embedder turns texts into vectors.
type Embedder interface {
	// Name identifies the embedder: vectors of different names are never compared.
	Name() string
	// Model is the name of the model, whichever service has it.
	Model() string
	// Embed returns one vector per text, all of the same dimension.
	Embed(ctx context.Context, texts []string) ([]Vector, error)
}

// Unit scales values to length 1 in float64 and rounds them to float32.
func Unit(values []float64) Vector {
	sum := 0.0
	for _, value := range values {
		sum += float64(value * value) // the conversion prevents a fused multiply-add
	}
	norm := math.Sqrt(sum)
	vector := make(Vector, len(values))
	if norm == 0 {
		return vector
	}
	for i, value := range values {
		vector[i] = float32(value / norm)
	}
	return vector
}
