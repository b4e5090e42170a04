package llm

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"memoryd/internal/problem"
	"memoryd/internal/upstream"
)

// dialect is one of the two APIs, as frames of a stream.
type dialect struct {
	name                          string
	model                         func(service upstream.Service, url string) Model
	path                          string
	begin, delta, end, fault, odd string
}

// service has a timeout that no busy machine exceeds; tests of silence have a virtual clock.
var service = upstream.Service{Name: "reader", Key: "sk-secret", Timeout: time.Minute}

var dialects = []dialect{
	{
		name:  "openai",
		model: func(service upstream.Service, url string) Model { return NewOpenAI(service, url+"/v1") },
		path:  "/v1/chat/completions",
		begin: ": a comment\n\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
		delta: "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n",
		end: "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n" +
			"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n",
		fault: "data: {\"error\":{\"message\":\"overloaded\"}}\n\n",
		odd:   "data: {\"choices\":7}\n\n",
	},
	{
		name:  "anthropic",
		model: func(service upstream.Service, url string) Model { return NewAnthropic(service, url) },
		path:  "/v1/messages",
		begin: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":7}}}\n\n" +
			"event: ping\ndata: {\"type\":\"ping\"}\n\n",
		delta: "event: content_block_delta\n" +
			"data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":%q}}\n\n",
		end: "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":3}}\n\n" +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		fault: "event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":\"overloaded\"}}\n\n",
		odd: "event: content_block_delta\n" +
			"data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":7}}\n\n",
	},
}

// serve answers every request with the handler, after reading its body.
func serve(t *testing.T, d dialect, service upstream.Service, handler func(w http.ResponseWriter, body string)) Model {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path != d.path {
			t.Errorf("asked %s", r.URL.Path)
		}
		handler(w, string(body))
	}))
	t.Cleanup(server.Close)
	return d.model(service, server.URL)
}

func stream(w http.ResponseWriter, frames ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, frame := range frames {
		fmt.Fprint(w, frame)
		w.(http.Flusher).Flush()
	}
}

func complete(t *testing.T, m Model) (string, *Usage, error) {
	var answer strings.Builder
	usage, err := m.Stream(t.Context(), Prompt{Model: "m", System: "s", User: "u"}, func(delta string) error {
		answer.WriteString(delta)
		return nil
	})
	return answer.String(), usage, err
}

func TestStream(t *testing.T) {
	for _, d := range dialects {
		m := serve(t, d, service, func(w http.ResponseWriter, body string) {
			for _, never := range []string{"temperature", "top_p", "max_completion_tokens"} {
				if strings.Contains(body, never) {
					t.Errorf("%s: asked with %s", d.name, never)
				}
			}
			stream(w, d.begin, fmt.Sprintf(d.delta, "Ilse "), fmt.Sprintf(d.delta, "[1]"), d.end)
		})
		answer, usage, err := complete(t, m)
		if err != nil || answer != "Ilse [1]" || usage == nil || *usage != (Usage{7, 3}) {
			t.Errorf("%s: %q, %v, %v", d.name, answer, usage, err)
		}
	}
}

func TestRefusalIsRetriedTwice(t *testing.T) {
	for _, d := range dialects {
		calls := 0
		m := serve(t, d, service, func(w http.ResponseWriter, _ string) {
			if calls++; calls < 3 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			stream(w, d.begin, fmt.Sprintf(d.delta, "x"), d.end)
		})
		if answer, _, err := complete(t, m); err != nil || answer != "x" || calls != 3 {
			t.Errorf("%s: %q, %v, in %d calls", d.name, answer, err, calls)
		}
	}
}

func TestStreamFaults(t *testing.T) {
	for _, d := range dialects {
		first := fmt.Sprintf(d.delta, "some ")
		for _, test := range []struct {
			name    string
			handler func(w http.ResponseWriter)
			answer  string
			code    problem.Code
			message string
		}{
			{"ends early", func(w http.ResponseWriter) { stream(w, d.begin, first) }, "some ", problem.BadGateway, "prematurely"},
			{"is cut", func(w http.ResponseWriter) { stream(w, d.begin, first); panic(http.ErrAbortHandler) }, "some ", problem.BadGateway, "EOF"},
			{"an error", func(w http.ResponseWriter) { stream(w, d.begin, first, d.fault) }, "some ", problem.BadGateway, "overloaded"},
			{"no JSON", func(w http.ResponseWriter) { stream(w, d.begin, strings.ReplaceAll(first, "}", "")) }, "", problem.BadGateway, ""},
			{"another shape", func(w http.ResponseWriter) { stream(w, d.begin, first, d.odd) }, "some ", problem.BadGateway, "cannot decode"},
			{"no object", func(w http.ResponseWriter) { stream(w, d.begin, first, "data: 7\n\n") }, "some ", problem.BadGateway, ""},
			{"refused", func(w http.ResponseWriter) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusUnauthorized)
				fmt.Fprint(w, `{"error":{"message":"bad key sk-secret"}}`)
			}, "", problem.BadGateway, "bad key ***"},
			{"no event stream", func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") }, "", problem.BadGateway, "prematurely"},
		} {
			m := serve(t, d, service, func(w http.ResponseWriter, _ string) { test.handler(w) })
			answer, _, err := complete(t, m)
			var failure *problem.Error
			if !errors.As(err, &failure) || failure.Code != test.code || !strings.Contains(err.Error(), test.message) {
				t.Errorf("%s, %s: %v", d.name, test.name, err)
			}
			if answer != test.answer {
				t.Errorf("%s, %s: %q", d.name, test.name, answer)
			}
		}
	}
}

func TestComplete(t *testing.T) {
	for i, answer := range []string{
		`{"choices":[{"message":{"content":"{\"scores\":[1]}"},"finish_reason":"stop"}]}`,
		`{"content":[{"type":"text","text":"{\"scores\":[1]}"}]}`,
	} {
		m := serve(t, dialects[i], service, func(w http.ResponseWriter, body string) {
			if strings.Contains(body, `"stream"`) {
				t.Errorf("asked for a stream: %s", body)
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, answer)
		})
		got, err := m.Complete(t.Context(), Prompt{Model: "m", System: "s", User: "u"})
		if err != nil || got != `{"scores":[1]}` {
			t.Errorf("%s: %q, %v", dialects[i].name, got, err)
		}
	}
}
