package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// serve returns a client of a daemon that answers with handle.
func serve(t *testing.T, options Options, handle http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	client, err := New(server.URL, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func TestABrainIsOneSegmentOfThePath(t *testing.T) {
	for brain, want := range map[string]string{
		"..":    "/v1/brains/../search",
		"a/b?c": "/v1/brains/a%2Fb%3Fc/search",
		"灯":     "/v1/brains/%E7%81%AF/search",
	} {
		var got string
		client := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
			got = r.RequestURI
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("{}"))
		})
		if _, err := client.Search(t.Context(), brain, struct{}{}); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", brain, got, err, want)
		}
	}
}

func TestCancellingTheContextEndsTheRequest(t *testing.T) {
	ended := make(chan struct{})
	client := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("event: answer_delta\ndata: {}\n\n"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(ended)
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range client.Ask(ctx, "b", struct{}{}) {
		last = err
		cancel()
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("got %v", last)
	}
	<-ended
}

func TestAURLThatIsNotOfHTTPIsRefused(t *testing.T) {
	for _, base := range []string{"", "localhost:80", "ftp://localhost", "http:///path", "http://[::"} {
		if client, err := New(base, Options{}); err == nil {
			t.Error(fmt.Sprintf("%q:", base), client.prefix)
		}
	}
}
