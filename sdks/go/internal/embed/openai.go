package embed

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"

	"memoryd/internal/upstream"
)

// callLimit is how many texts one call embeds.
const callLimit = 64

// OpenAI embeds with the embeddings API, which Ollama serves too.
type OpenAI struct {
	name  string
	model string
	api   upstream.API
}

// NewOpenAI returns an embedder; an empty baseURL means OpenAI's. The embedder's name
// contains everything that its vectors depend on, and only a digest of the URL, because that may
// contain a password.
func NewOpenAI(service upstream.Service, baseURL, provider, model string) *OpenAI {
	address := sha256.Sum256([]byte(baseURL))
	return &OpenAI{
		name:  fmt.Sprintf("%s/%s@%x", provider, model, address[:6]),
		model: model,
		api:   upstream.OpenAI(service, baseURL),
	}
}

func (o *OpenAI) Name() string { return o.name }

func (o *OpenAI) Model() string { return o.model }

func (o *OpenAI) Embed(ctx context.Context, texts []string) ([]Vector, error) {
	vectors := make([]Vector, 0, len(texts))
	for some := range slices.Chunk(texts, callLimit) {
		err := o.api.Call(ctx, func(ctx context.Context) error {
			var answer embeddings
			request := embeddingRequest{Model: o.model, Input: some, EncodingFormat: "float"}
			err := o.api.PostFor(ctx, "embeddings", request, &answer)
			if err == nil {
				vectors, err = appendVectors(vectors, answer, len(some))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return vectors, nil
}

type embeddingRequest struct {
	Model          string   `json:"model"`
	Input          []string `json:"input"`
	EncodingFormat string   `json:"encoding_format"`
}

// embeddings is the part of a response that is read.
type embeddings struct {
	Data []struct {
		Index     *int       `json:"index"`
		Embedding []*float64 `json:"embedding"`
	} `json:"data"`
}

// appendVectors adds those of the response for this many texts; all must have the same dimension.
func appendVectors(vectors []Vector, body embeddings, texts int) ([]Vector, error) {
	if len(body.Data) != texts {
		return nil, fmt.Errorf("%d vectors for %d texts", len(body.Data), texts)
	}
	first := len(vectors)
	vectors = append(vectors, make([]Vector, texts)...)
	for place, item := range body.Data {
		if item.Index != nil {
			place = *item.Index
		}
		if place < 0 || place >= texts || vectors[first+place] != nil {
			return nil, errors.New("embeddings do not match the texts one to one")
		}
		vector, err := unitOf(item.Embedding)
		if err != nil {
			return nil, err
		}
		vectors[first+place] = vector
	}
	for _, vector := range vectors {
		if len(vector) != len(vectors[0]) {
			return nil, errors.New("embeddings differ in dimension")
		}
	}
	return vectors, nil
}

func unitOf(numbers []*float64) (Vector, error) {
	if len(numbers) == 0 {
		return nil, errors.New("an embedding is empty")
	}
	values := make([]float64, len(numbers))
	squares := 0.0
	for i, number := range numbers {
		if number == nil {
			return nil, errors.New("an embedding contains null")
		}
		values[i] = *number
		squares += float64(*number * *number)
	}
	if math.IsInf(squares, 0) {
		return nil, errors.New("the length of an embedding is not finite")
	}
	return Unit(values), nil
}
