package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"memoryd/internal/brain"
)

func dial(t *testing.T, server *httptest.Server) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	_ = connection.SetDeadline(time.Now().Add(time.Minute))
	return connection
}

// listener reads one events stream.
type listener struct {
	t     *testing.T
	body  io.ReadCloser
	lines *bufio.Scanner
	leave func()
}

func listen(t *testing.T, server *httptest.Server, id string) *listener {
	t.Helper()
	ctx, leave := context.WithTimeout(t.Context(), time.Minute)
	request, err := http.NewRequestWithContext(ctx, "GET", server.URL+"/v1/brains/"+id+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{t, response.Body, bufio.NewScanner(response.Body), leave}
	l.lines.Buffer(nil, 4<<20)
	t.Cleanup(l.close)
	h := response.Header
	if h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", h)
	}
	if got := l.next(); got != "event: ready|data: ok" {
		t.Errorf("%q", got)
	}
	return l
}

func (l *listener) close() {
	l.leave()
	_ = l.body.Close()
}

// next returns an event with its lines joined, or an empty string if the stream has ended properly.
func (l *listener) next() string {
	l.t.Helper()
	var event []string
	for l.lines.Scan() && l.lines.Text() != "" {
		event = append(event, l.lines.Text())
	}
	if err := l.lines.Err(); err != nil {
		l.t.Fatal(err)
	}
	return strings.Join(event, "|")
}

var varying = regexp.MustCompile(`id: \d+|"when":"[0-9T:.-]+Z"`)

func TestAllSubscribersReceiveChangesInOrder(t *testing.T) {
	server := newTestServer(t, nil)
	ask(t, server, "POST", "/v1/brains", `{"brainId":"other"}`)
	ask(t, server, "PUT", at("", "before"), "x")
	one, two, other := listen(t, server, "b"), listen(t, server, "b"), listen(t, server, "other")
	ask(t, server, "PUT", at("", "a"), "x")
	ask(t, server, "PUT", at("", "a/b"), "refused")
	ask(t, server, "POST", documents+"/rename", `{"from":"a","to":"a"}`)
	ask(t, server, "POST", documents+"/batch-ops",
		`{"reason":"r\n","ops":[{"type":"append","path":"a","content_base64":""},{"type":"rename","path":"a","to":"_b"}]}`)
	ask(t, server, "POST", "/v1/brains/b/ingest/file", document("_b", "x", ""))
	ask(t, server, "DELETE", at("", "_b"), "")
	ask(t, server, "PUT", "/v1/brains/other/documents?path=o", "x")
	for _, want := range []string{
		`{"kind":"created","path":"a","when"}`,
		`{"kind":"updated","path":"a","reason":"r\n","when"}`,
		`{"kind":"renamed","path":"_b","old_path":"a","reason":"r\n","when"}`,
		`{"kind":"updated","path":"_b","when"}`,
		`{"kind":"deleted","path":"_b","when"}`,
	} {
		got := one.next()
		if second := two.next(); second != got {
			t.Errorf("%q, and %q", got, second)
		}
		if len(varying.FindAllString(got, -1)) != 2 || !strings.Contains(strings.ReplaceAll(
			varying.ReplaceAllString(got, `"when"`), `"when"|data: `, `id|data: `), "event: change|id|data: "+want) {
			t.Errorf("%q, want %s", got, want)
		}
	}
	if got := other.next(); !strings.Contains(got, `"path":"o"`) {
		t.Errorf("%q", got)
	}
}

func TestStreamEndsWithItsBrain(t *testing.T) {
	server := newTestServer(t, nil)
	l := listen(t, server, "b")
	request, err := http.NewRequestWithContext(t.Context(), "DELETE", server.URL+"/v1/brains/b", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Confirm-Delete", "yes")
	expectStatus(t, send(t, request), 204)
	if got := l.next(); got != "" {
		t.Errorf("%q", got)
	}
	expectProblem(t, "deleted", ask(t, server, "GET", "/v1/brains/b/events", ""), 404, "b")
}

func TestStreamPingsUntilTheDaemonEnds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	// short limit: pings may come as late as they like
	server := newTestServer(t, nil, func(a *API) { a.Stopping, a.PingAfter = ctx.Done(), 10*time.Millisecond })
	l := listen(t, server, "b")
	for range 3 {
		if got := l.next(); got != "event: ping|data: ok" {
			t.Errorf("%q", got)
		}
	}
	stop()
	for l.next() != "" {
	}
}

func TestStalledClientBlocksNobody(t *testing.T) {
	var store *brain.Store
	server := newTestServer(t, nil, func(a *API) { store = a.Store })
	slow := dial(t, server)
	if _, err := io.WriteString(slow, "GET /v1/brains/b/events HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	quick := listen(t, server, "b")
	b, err := store.Get(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	reason := strings.Repeat("x", 1<<20)
	for n := range 60 {
		path := fmt.Sprintf("_%d", n) // hidden, and so not indexed
		if err := b.Change(t.Context(), []brain.Operation{{Kind: brain.Write, Path: path}}, &reason); err != nil {
			t.Fatal(err)
		}
		if got := quick.next(); !strings.Contains(got, `"path":"`+path+`"`) {
			t.Fatalf("%.80q", got)
		}
	}
}

func TestDisconnectedClientIsUnsubscribed(t *testing.T) {
	left := make(chan struct{})
	a := &API{}
	newTestServer(t, nil, func(set *API) { a = set })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.Handler().ServeHTTP(w, r)
		close(left)
	}))
	defer server.Close()
	listen(t, server, "b").close()
	select {
	case <-left:
	case <-time.After(time.Minute):
		t.Error("the stream is still served")
	}
}
