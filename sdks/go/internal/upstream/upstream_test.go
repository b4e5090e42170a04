package upstream

import (
	"context"
	"errors"
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
