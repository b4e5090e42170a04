// Package servicetest serves model services in memory, so that tests of silence can use a virtual
// clock: a bubble of testing/synctest does not wait for a network.
package servicetest

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
)

// Address is where every request is answered until the test ends.
const Address = "http://service.test"

// Serve answers all requests of http.DefaultTransport, after reading their bodies.
func Serve(t *testing.T, handler func(w http.ResponseWriter, r *http.Request, body string)) {
	t.Helper()
	connections := listener{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		handler(w, r, string(body))
	})}
	go func() { _ = server.Serve(connections) }()
	transport := &http.Transport{DialContext: connections.dial}
	usual := http.DefaultTransport
	http.DefaultTransport = transport
	t.Cleanup(func() {
		http.DefaultTransport = usual
		transport.CloseIdleConnections()
		_ = server.Close()
	})
}

// listener accepts the other ends of the connections that are dialled.
type listener struct {
	dialled chan net.Conn
	closed  chan struct{}
}

func (l listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.dialled <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l listener) Accept() (net.Conn, error) {
	select {
	case connection := <-l.dialled:
		return connection, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l listener) Close() error {
	close(l.closed)
	return nil
}

func (listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "pipe"} }
