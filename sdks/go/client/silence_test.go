//go:build go1.25

package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// With real time it failed on a machine that stalled for 200 ms.
func TestATimeThatTheProgramTakesIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = time.Second
		client, err := New("http://daemon.test", Options{Idle: idle})
		if err != nil {
			t.Fatal(err)
		}
		var request context.Context
		client.pooled.RegisterProtocol("http", roundTrip(func(r *http.Request) (*http.Response, error) {
			request = r.Context()
			body, events := io.Pipe()
			go func() {
				_, _ = events.Write([]byte("event: answer_delta\ndata: {}\n\n"))
				<-request.Done()
				_ = events.CloseWithError(request.Err())
			}()
			header := http.Header{"Content-Type": {"text/event-stream"}}
			return &http.Response{StatusCode: http.StatusOK, Header: header, Body: body}, nil
		}))
		var last error
		events := 0
		for _, last = range client.Ask(t.Context(), "b", struct{}{}) {
			if last != nil {
				break
			}
			events++
			time.Sleep(2 * idle)
			if err := context.Cause(request); err != nil {
				t.Error("the request has ended while the program has the event:", err)
			}
		}
		// The silence after it is the daemon's.
		if events != 1 || !errors.Is(last, errSilence) {
			t.Error("got", events, last)
		}
	})
}
