package rerank

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"memoryd/internal/llm"
	"memoryd/internal/problem"
	"memoryd/internal/prompt"
	"memoryd/internal/upstream"
)

var notes = []prompt.Note{{Path: "a.md", Text: "one"}, {Path: "b.md", Text: "two"}}

func newTestReranker(t *testing.T, handler http.HandlerFunc) *HTTP {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	service := upstream.Service{Name: "reranker", Key: "sk-rerank", Timeout: time.Minute}
	return NewHTTP(service, server.URL+"/rerank", "m")
}

func TestHTTP(t *testing.T) {
	calls := 0
	reranker := newTestReranker(t, func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		body, _ := io.ReadAll(r.Body)
		if want := `{"model":"m","query":"q","documents":["one","two"],"top_n":2}`; string(body) != want {
			t.Errorf("asked %s", body)
		}
		if got := r.Header.Get("Authorization"); got != "Bearer sk-rerank" {
			t.Errorf("asked with %q", got)
		}
		fmt.Fprint(w, `{"results":[{"index":1,"relevance_score":7.5},{"index":0,"relevance_score":-1}]}`)
	})
	scores, err := reranker.Scores(t.Context(), "q", notes)
	if err != nil || !slices.Equal(scores, []float64{-1, 7.5}) || calls != 2 {
		t.Errorf("%v, %v, in %d calls", scores, err, calls)
	}
}

func TestInvalidRankingIsAFailure(t *testing.T) {
	for name, answer := range map[string]string{
		"no JSON":       `{"results":[`,
		"too few":       `{"results":[{"index":0,"relevance_score":1}]}`,
		"the same":      `{"results":[{"index":0,"relevance_score":1},{"index":0,"relevance_score":1}]}`,
		"no such index": `{"results":[{"index":0,"relevance_score":1},{"index":2,"relevance_score":1}]}`,
		"no score":      `{"results":[{"index":0,"relevance_score":1},{"index":1}]}`,
		"not finite":    `{"results":[{"index":0,"relevance_score":1},{"index":1,"relevance_score":1e999}]}`,
		"a string":      `{"results":[{"index":0,"relevance_score":1},{"index":1,"relevance_score":"1"}]}`,
	} {
		reranker := newTestReranker(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) })
		_, err := reranker.Scores(t.Context(), "q", notes)
		expect(t, name, err, problem.BadGateway)
	}
}

func TestSilentServiceIsATimeout(t *testing.T) {
	reranker := newTestReranker(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		<-r.Context().Done()
	})
	reranker.api.Timeout = 50 * time.Millisecond // short limit: the silence is endless
	_, err := reranker.Scores(t.Context(), "q", notes)
	expect(t, "silence", err, problem.Timeout)
}

func expect(t *testing.T, name string, err error, code problem.Code) {
	t.Helper()
	var failure *problem.Error
	if !errors.As(err, &failure) || failure.Code != code {
		t.Errorf("%s: %v", name, err)
	}
}

type model struct {
	reply string
	asked llm.Prompt
}

func (m *model) Complete(_ context.Context, p llm.Prompt) (string, error) {
	m.asked = p
	return m.reply, nil
}

func (*model) Stream(context.Context, llm.Prompt, func(string) error) (*llm.Usage, error) {
	panic("not asked for")
}

func TestLLM(t *testing.T) {
	m := &model{reply: `{"scores": [1, 9]}`}
	reranker := LLM{Model: m, ModelName: "judge"}
	scores, err := reranker.Scores(t.Context(), "q", notes)
	if err != nil || !slices.Equal(scores, []float64{1, 9}) {
		t.Errorf("%v, %v", scores, err)
	}
	want := llm.Prompt{Model: "judge", System: prompt.RerankSystem, User: prompt.User(prompt.Basic, "q", "", notes)}
	if m.asked != want {
		t.Errorf("asked %+v", m.asked)
	}
	m.reply = "I cannot"
	_, err = reranker.Scores(t.Context(), "q", notes)
	expect(t, "a reply without scores", err, problem.BadGateway)
}
