package client

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
)

// endedConn is a connection that ends while its second request is written, after the head.
type endedConn struct {
	net.Conn
	writes *atomic.Int32
}

func (c endedConn) Write(content []byte) (int, error) {
	if c.writes.Add(1) == 4 {
		return 0, &net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)}
	}
	return c.Conn.Write(content)
}

func TestKeptConnectionThatEndsBehindTheHeadOfARequestFailsNoCall(t *testing.T) {
	var answered, writes, dials atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			return
		}
		answered.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"chunks":[]}`)
	}))
	t.Cleanup(server.Close)
	c, err := New(server.URL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.pooled.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return endedConn{conn, &writes}, err
	}
	for range 2 {
		if _, err := c.Search(t.Context(), "b", map[string]string{"query": "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if answered.Load() != 2 || writes.Load() != 4 || dials.Load() != 1 {
		t.Errorf("%d answered, %d writes, %d kept connections", answered.Load(), writes.Load(), dials.Load())
	}
}
