package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"memoryd/internal/problem"
)

func TestErrorMessages(t *testing.T) {
	service := Service{Name: "reader", Key: "sk-secret", Timeout: time.Minute}
	for _, test := range []struct {
		err  error
		want string
	}{
		{errors.New("bad key sk-secret\n"), "reader: bad key ***"},
		{errors.New(""), "reader: failed without a word"},
		{errors.New(strings.Repeat("é", 300)), "reader: " + strings.Repeat("é", messageLimit/2)},
		{&url.Error{Op: "Post", URL: "http://me:word@host/?token=x", Err: errors.New("refused")}, "reader: refused"},
	} {
		err := service.Call(t.Context(), func(context.Context) error { return test.err })
		var failure *problem.Error
		if !errors.As(err, &failure) || failure.Code != problem.BadGateway || failure.Detail != test.want {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

func TestCancelledCallerIsNotAServiceFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := Service{Timeout: time.Minute}.Call(ctx, func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	if err != context.Canceled {
		t.Errorf("Call = %v", err)
	}
}

func TestRefusalDoesNotRearmTheWatchdog(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte("busy"))
	}))
	defer server.Close()
	client := Client()
	started := time.Now()
	err := Service{Name: "reader", Timeout: 100 * time.Millisecond}.Call(t.Context(), func(ctx context.Context) error {
		for ctx.Err() == nil {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
			if err != nil {
				return err
			}
			response, err := client.Do(request)
			if err != nil {
				return err
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			time.Sleep(10 * time.Millisecond)
		}
		return ctx.Err()
	})
	var failure *problem.Error
	if !errors.As(err, &failure) || failure.Code != problem.Timeout || time.Since(started) > time.Minute {
		t.Errorf("%v after %s", err, time.Since(started))
	}
}

func TestSlowClientIsNotSilence(t *testing.T) {
	service := Service{Name: "reader", Timeout: 500 * time.Millisecond}
	err := service.Call(t.Context(), func(ctx context.Context) error {
		emit := Passing(ctx, func(string) error {
			time.Sleep(time.Second)
			return ctx.Err()
		})
		return errors.Join(emit("one"), emit("two"))
	})
	if err != nil {
		t.Errorf("Call = %v", err)
	}
	// Silence after it still counts.
	err = service.Call(t.Context(), func(ctx context.Context) error {
		_ = Passing(ctx, func(string) error { return nil })("one")
		<-ctx.Done()
		return ctx.Err()
	})
	var failure *problem.Error
	if !errors.As(err, &failure) || failure.Code != problem.Timeout {
		t.Errorf("Call = %v", err)
	}
}
