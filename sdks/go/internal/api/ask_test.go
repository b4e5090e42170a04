package api

import (
	"bufio"
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"memoryd/internal/llm"
	"memoryd/internal/problem"
	"memoryd/internal/reader"
)

// chunkIDs matches hashes, which have their own test.
var chunkIDs = regexp.MustCompile(`[0-9a-f]{32}#`)

const question = `{"question":"Who lights the lamp?","questionDate":"2024-06-01"}`

// tail returns what follows the retrieve event, which contains timings.
func tail(t *testing.T, body string) string {
	t.Helper()
	first, rest, found := strings.Cut(body, "\n\n")
	if !found || !strings.HasPrefix(first, "event: retrieve\ndata: {\"chunks\":[") {
		t.Errorf("%q does not begin with a retrieve event", body)
	}
	return rest
}

func TestAnswer(t *testing.T) {
	server := newTestServer(t, reader.Fake{})
	ask(t, server, "POST", "/v1/brains/b/ingest/file", document("a.md", "Bo sleeps. Ilse lights\u2028the lamp.", ""))
	got := ask(t, server, "POST", "/v1/brains/b/ask", question)
	if got.header.Get("Content-Type") != "text/event-stream" || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", got.header)
	}
	want := "event: answer_delta\ndata: {\"text\":\"Ilse \"}\n\n" +
		"event: answer_delta\ndata: {\"text\":\"lights\u2028the \"}\n\n" +
		"event: answer_delta\ndata: {\"text\":\"lamp.\"}\n\n" +
		"event: citation\ndata: {\"chunkId\":\"00000000000000000000000000000000#0\",\"path\":\"a.md\",\"title\":\"a.md\",\"score\":0.000003}\n\n" +
		"event: done\ndata: {\"ok\":true,\"answer\":\"Ilse lights\u2028the lamp.\"}\n\n"
	if rest := tail(t, got.body); chunkIDs.ReplaceAllString(rest, "#") != chunkIDs.ReplaceAllString(want, "#") {
		t.Errorf("%q", rest)
	}
	ask(t, server, "POST", "/v1/brains", `{"brainId":"empty"}`)
	got = ask(t, server, "POST", "/v1/brains/empty/ask", question)
	if rest := tail(t, got.body); strings.Contains(rest, "citation") ||
		!strings.HasSuffix(rest, "{\"ok\":true,\"answer\":\"No information available.\"}\n\n") {
		t.Errorf("%q", rest)
	}
}

func TestWithoutAReader(t *testing.T) {
	expectProblem(t, "ask", ask(t, newTestServer(t, nil), "POST", "/v1/brains/b/ask", question), 502, "no reader")
}

// scripted is a reader that emits its deltas and then returns its answer or error.
type scripted struct {
	deltas []string
	answer reader.Answer
	err    error
	ended  chan error // if set, the answer never ends by itself
	asked  reader.Question
}

func (s *scripted) Read(ctx context.Context, q reader.Question, emit func(string) error) (reader.Answer, error) {
	s.asked = q
	for _, delta := range s.deltas {
		if err := emit(delta); err != nil {
			return reader.Answer{}, err
		}
	}
	if s.ended != nil {
		<-ctx.Done()
		s.ended <- ctx.Err()
		return reader.Answer{}, ctx.Err()
	}
	return s.answer, s.err
}

func TestUsageIsReported(t *testing.T) {
	s := &scripted{deltas: []string{"x"}, answer: reader.Answer{Text: "x", Usage: &llm.Usage{InputTokens: 7}}}
	server := newTestServer(t, s)
	got := ask(t, server, "POST", "/v1/brains/b/ask", question)
	if !strings.HasSuffix(got.body, `{"ok":true,"answer":"x","usage":{"inputTokens":7,"outputTokens":0}}`+"\n\n") {
		t.Errorf("%q", got.body)
	}
	if s.asked.Text != "Who lights the lamp?" || s.asked.Date != "2024-06-01" || s.asked.Mode != "basic" {
		t.Errorf("asked %+v", s.asked)
	}
}

func TestFailureWithinTheStream(t *testing.T) {
	server := newTestServer(t, &scripted{deltas: []string{"some "}, err: problem.New(problem.Timeout, "silent")})
	got := ask(t, server, "POST", "/v1/brains/b/ask", question)
	want := "event: answer_delta\ndata: {\"text\":\"some \"}\n\n" +
		"event: error\ndata: {\"code\":\"timeout\",\"message\":\"silent\"}\n\n" +
		"event: done\ndata: {\"ok\":false}\n\n"
	if rest := tail(t, got.body); got.status != 200 || rest != want {
		t.Errorf("%d %q", got.status, rest)
	}
}

func TestDeltasAreFlushedAndDisconnectCancelsTheReader(t *testing.T) {
	s := &scripted{deltas: []string{"some "}, ended: make(chan error, 1)}
	server := newTestServer(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "POST", server.URL+"/v1/brains/b/ask", strings.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "some ") {
	}
	cancel()
	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		t.Error("the reader still reads")
	}
}
