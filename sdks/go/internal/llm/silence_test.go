//go:build go1.25

package llm

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"memoryd/internal/problem"
	"memoryd/internal/servicetest"
	"memoryd/internal/upstream"
)

var impatient = upstream.Service{Name: "reader", Timeout: time.Second}

func serveInMemory(t *testing.T, d dialect, handler func(w http.ResponseWriter)) Model {
	servicetest.Serve(t, func(w http.ResponseWriter, _ *http.Request, _ string) { handler(w) })
	return d.model(impatient, servicetest.Address)
}

func TestSilenceIsATimeout(t *testing.T) {
	for _, d := range dialects {
		first := fmt.Sprintf(d.delta, "some ")
		for name, test := range map[string]struct {
			handler func(t *testing.T, w http.ResponseWriter)
			answer  string
		}{
			"silence": {func(t *testing.T, _ http.ResponseWriter) { <-t.Context().Done() }, ""},
			"silence within": {func(t *testing.T, w http.ResponseWriter) {
				stream(w, d.begin, first)
				<-t.Context().Done()
			}, "some "},
			"a long wait to retry": {func(_ *testing.T, w http.ResponseWriter) {
				w.Header().Set("Retry-After", "50")
				w.WriteHeader(http.StatusTooManyRequests)
			}, ""},
		} {
			t.Run(d.name+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := serveInMemory(t, d, func(w http.ResponseWriter) { test.handler(t, w) })
					started := time.Now()
					answer, _, err := complete(t, m)
					var failure *problem.Error
					if !errors.As(err, &failure) || failure.Code != problem.Timeout {
						t.Errorf("%v", err)
					}
					if answer != test.answer || time.Since(started) != impatient.Timeout {
						t.Errorf("%q after %s", answer, time.Since(started))
					}
				})
			})
		}
	}
}

func TestEachPieceRearmsTheWatchdog(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := serveInMemory(t, d, func(w http.ResponseWriter) {
					stream(w, d.begin)
					for range 8 {
						for _, piece := range []string{": a comment\n\n", fmt.Sprintf(d.delta, "x")} {
							time.Sleep(impatient.Timeout - time.Nanosecond)
							stream(w, piece)
						}
					}
					stream(w, d.end)
				})
				if answer, _, err := complete(t, m); err != nil || answer != "xxxxxxxx" {
					t.Errorf("%q, %v", answer, err)
				}
			})
		})
	}
}
