package daemon

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"memoryd/internal/problem"
	"memoryd/internal/wire"
)

// net/http answers requests that it cannot parse itself, in plain text and before any handler: a
// malformed request line or escape, a missing or invalid Host header. It has no hook for that, so
// its response is replaced as it is written. Any other response passes unchanged, including one that
// a later net/http may word differently.

// problemListener accepts connections that replace such a response by a problem.
type problemListener struct{ net.Listener }

func (l problemListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if tcp, ok := accepted.(*net.TCPConn); ok {
		return &connection{TCPConn: tcp}, nil
	}
	return accepted, nil
}

type connection struct {
	*net.TCPConn
	parsed atomic.Bool // a handler has the request: what is written now is its response
}

var (
	refusalStart = []byte("HTTP/1.1 ")
	refusalWords = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")
)

func (c *connection) Write(p []byte) (int, error) {
	if c.parsed.Load() || !bytes.HasPrefix(p, refusalStart) {
		return c.TCPConn.Write(p)
	}
	_, reason, found := bytes.Cut(p, refusalWords)
	if !found {
		return c.TCPConn.Write(p)
	}
	if _, err := c.TCPConn.Write(refusal(string(reason))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// refusal returns a complete response, with the contract's only status for an unparsable request.
func refusal(reason string) []byte {
	p := problem.Invalid("not a valid HTTP request: %s", reason)
	body, _ := wire.Marshal(p.Body()) // cannot fail: strings and a number
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		p.Code.Status(), http.StatusText(p.Code.Status()), problem.MediaType, len(body), body)
}

type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// expectRequest is called before each request is read.
func expectRequest(c net.Conn, state http.ConnState) {
	if own, ok := c.(*connection); ok && state == http.StateActive {
		own.parsed.Store(false)
	}
}

func markParsed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if own, ok := r.Context().Value(connectionKey{}).(*connection); ok {
			own.parsed.Store(true)
		}
		next.ServeHTTP(w, r)
	})
}
