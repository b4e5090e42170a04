package embed

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"memoryd/internal/problem"
	"memoryd/internal/upstream"
	"memoryd/internal/wire"
)

func newTestEmbedder(t *testing.T, handler http.HandlerFunc) *OpenAI {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	service := upstream.Service{Name: "embedder", Key: "sk-secret", Timeout: time.Minute}
	return NewOpenAI(service, server.URL+"/v1", "openai", "some-model")
}

func TestOneCallEmbedsUpTo64Texts(t *testing.T) {
	var sizes []int
	embedder := newTestEmbedder(t, func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		var body struct {
			Model          string   `json:"model"`
			Input          []string `json:"input"`
			EncodingFormat string   `json:"encoding_format"`
		}
		if err := wire.Unmarshal(content, &body); err != nil {
			t.Error(err)
		}
		if r.URL.Path != "/v1/embeddings" || body.Model != "some-model" || body.EncodingFormat != "float" {
			t.Errorf("asked %s for %+v", r.URL.Path, body)
		}
		sizes = append(sizes, len(body.Input))
		var items []string
		for i := range body.Input {
			// Backwards: the index tells whose vector it is.
			place := len(body.Input) - 1 - i
			items = append(items, fmt.Sprintf(`{"index":%d,"embedding":[%d,0]}`, place, place+1))
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(items, ","))
	})
	vectors, err := embedder.Embed(t.Context(), make([]string, 130))
	if err != nil || len(vectors) != 130 || !slices.Equal(sizes, []int{64, 64, 2}) {
		t.Errorf("%d vectors in calls of %v, %v", len(vectors), sizes, err)
	}
	if !slices.Equal(vectors[0], Vector{1, 0}) {
		t.Errorf("vectors are scaled to length 1: %v", vectors[0])
	}
}

func TestNameContainsAllThatVectorsDependOn(t *testing.T) {
	base := NewOpenAI(upstream.Service{}, "http://one/v1", "openai", "m").Name()
	if !strings.HasPrefix(base, "openai/m@") {
		t.Errorf("Name() = %s", base)
	}
	for _, other := range []*OpenAI{
		NewOpenAI(upstream.Service{}, "http://two/v1", "openai", "m"),
		NewOpenAI(upstream.Service{}, "http://one/v1", "openai", "n"),
		NewOpenAI(upstream.Service{}, "http://one/v1", "ollama", "m"),
	} {
		if other.Name() == base {
			t.Errorf("%s is the name of two embedders", base)
		}
	}
}

func TestInvalidEmbeddingsAreRejected(t *testing.T) {
	for name, answer := range map[string]string{
		"no JSON":            `{"data":[{"embedding":[1`,
		"too few":            `{"data":[{"index":0,"embedding":[1]}]}`,
		"twice the same":     `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`,
		"index out of range": `{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}`,
		"several dimensions": `{"data":[{"embedding":[1]},{"embedding":[1,2]}]}`,
		"no numbers":         `{"data":[{"embedding":[]},{"embedding":[]}]}`,
		"strings":            `{"data":[{"embedding":["1"]},{"embedding":["1"]}]}`,
		"null":               `{"data":[{"embedding":[null]},{"embedding":[1]}]}`,
		"not finite":         `{"data":[{"embedding":[1e999]},{"embedding":[1]}]}`,
		"length not finite":  `{"data":[{"embedding":[1e200]},{"embedding":[1]}]}`,
	} {
		embedder := newTestEmbedder(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, answer)
		})
		_, err := embedder.Embed(t.Context(), []string{"a", "b"})
		var failure *problem.Error
		if !errors.As(err, &failure) || failure.Code != problem.BadGateway {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeyIsNotRepeatedInErrors(t *testing.T) {
	embedder := newTestEmbedder(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":{"message":"Incorrect API key provided: sk-secret"}}`)
	})
	_, err := embedder.Embed(t.Context(), []string{"a"})
	if err == nil || strings.Contains(err.Error(), "sk-secret") || !strings.Contains(err.Error(), "Incorrect API key") {
		t.Errorf("the error is %v", err)
	}
}
