//go:build go1.25

package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"memoryd/internal/problem"
	"memoryd/internal/servicetest"
)

var impatient = Service{Name: "reader", Timeout: time.Second}

// silentAfter expects that a call is ended for silence, at this time of the virtual clock.
func silentAfter(t *testing.T, want time.Duration, do func(ctx context.Context) error) {
	t.Helper()
	started := time.Now()
	err := impatient.Call(t.Context(), do)
	var failure *problem.Error
	if !errors.As(err, &failure) || failure.Code != problem.Timeout || time.Since(started) != want {
		t.Errorf("%v after %s, want %s", err, time.Since(started), want)
	}
}

func wait(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestRefusalDoesNotRearmTheWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servicetest.Serve(t, func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("busy"))
		})
		client := NewAPI(Service{}, "", nil).client.HTTPClient
		silentAfter(t, impatient.Timeout, func(ctx context.Context) error {
			for range 100 {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, servicetest.Address, nil)
				if err != nil {
					return err
				}
				response, err := client.Do(request)
				if err != nil {
					return err
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(impatient.Timeout * 3 / 16):
				}
			}
			return errors.New("no end")
		})
	})
}

func TestSlowClientIsNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := impatient.Call(t.Context(), func(ctx context.Context) error {
			emit := Passing(ctx, func(string) error {
				time.Sleep(2 * impatient.Timeout)
				return ctx.Err()
			})
			return errors.Join(emit("one"), emit("two"))
		})
		if err != nil {
			t.Errorf("Call = %v", err)
		}
		// Silence after it still counts, from its end.
		silentAfter(t, 3*impatient.Timeout, func(ctx context.Context) error {
			_ = Passing(ctx, func(string) error {
				time.Sleep(2 * impatient.Timeout)
				return nil
			})("one")
			return wait(ctx)
		})
	})
}
