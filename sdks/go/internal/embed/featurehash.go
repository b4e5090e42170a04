package embed

import (
	"context"

	"memoryd/internal/text"
)

const (
	featureDims = 256
	signBit     = 1 << 31

	fnvOffset = 0x811C9DC5
	fnvPrime  = 0x01000193
)

// FeatureHashModel is a test double: its vectors know no meanings.
const FeatureHashModel = "fh256-1"

// FeatureHash is `fh256-1`: signed feature hashing of terms and adjacent pairs of terms.
type FeatureHash struct{}

func (FeatureHash) Name() string { return FeatureHashModel }

func (FeatureHash) Model() string { return FeatureHashModel }

func (FeatureHash) Embed(_ context.Context, texts []string) ([]Vector, error) {
	vectors := make([]Vector, len(texts))
	for i, t := range texts {
		vectors[i] = hashFeatures(text.Terms(t))
	}
	return vectors, nil
}

func hashFeatures(terms []string) Vector {
	counts := make([]float64, featureDims)
	add := func(hash uint32) {
		if hash&signBit != 0 {
			counts[hash%featureDims]--
		} else {
			counts[hash%featureDims]++
		}
	}
	for i, term := range terms {
		hash := fnv1a(fnvOffset, term)
		add(hash)
		if i+1 < len(terms) {
			add(fnv1a(fnv1a(hash, " "), terms[i+1]))
		}
	}
	return Unit(counts)
}

// fnv1a continues a 32-bit FNV-1a hash with s. Unlike hash/fnv it accepts an intermediate hash, so
// that the hash of a pair continues that of its first term.
func fnv1a(hash uint32, s string) uint32 {
	for i := range len(s) {
		hash = (hash ^ uint32(s[i])) * fnvPrime
	}
	return hash
}
