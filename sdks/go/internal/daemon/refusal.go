package daemon

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"memoryd/internal/problem"
	"memoryd/internal/wire"
)

// net/http answers requests that it cannot parse itself, in plain text and before any handler: a
// malformed request line or escape, a missing or invalid Host header. It has no hook for that. But
// what is written while no handler has the request can only be such a response, so a problem is
// written in its place, whatever its words.

// problemListener accepts connections that replace such a response by a problem.
type problemListener struct{ *net.TCPListener }

func (l problemListener) Accept() (net.Conn, error) {
	accepted, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return &connection{TCPConn: accepted}, nil
}

type connection struct {
	*net.TCPConn
	parsed  atomic.Bool // a handler has the request: what is written now is its response
	refused atomic.Bool // the problem is written; net/http closes the connection
}

func (c *connection) Write(p []byte) (int, error) {
	if c.parsed.Load() {
		return c.TCPConn.Write(p)
	}
	if !c.refused.Swap(true) {
		if _, err := c.TCPConn.Write(refusal()); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// refusal returns a complete response, with the contract's only status for an unparsable request.
func refusal() []byte {
	p := problem.Invalid("the request is not valid HTTP")
	body, _ := wire.Marshal(p.Body()) // cannot fail: strings and a number
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		p.Code.Status(), http.StatusText(p.Code.Status()), problem.MediaType, len(body), body)
}

type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// expectRequest is called when a connection is idle, before its next request is parsed. StateActive
// is not enough: it is skipped if the request arrived in one piece with the bytes that ended the wait.
func expectRequest(c net.Conn, state http.ConnState) {
	if own, ok := c.(*connection); ok && state == http.StateIdle {
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
