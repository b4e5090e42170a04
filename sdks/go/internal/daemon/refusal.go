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

// net/http answers what it cannot read as HTTP by itself, in plain text and before any handler: a
// malformed request line or escape, a header Host that is missing or none. It has no hook for that,
// so its words are replaced on their way out. Any other answer passes as it is, those that a later
// net/http may word otherwise included.

// problemListener accepts connections that make a problem of such an answer.
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
	understood atomic.Bool // a handler has the request: what is written now is its answer
}

var (
	refusalStart = []byte("HTTP/1.1 ")
	refusalWords = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")
)

func (c *connection) Write(p []byte) (int, error) {
	if c.understood.Load() || !bytes.HasPrefix(p, refusalStart) {
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

// refusal is a whole answer, of the one status that the contract has for a request that is none.
func refusal(reason string) []byte {
	p := problem.Invalid("not to be read as HTTP: %s", reason)
	body, _ := wire.Marshal(p.Body()) // of strings and a number, which cannot fail
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		p.Code.Status(), http.StatusText(p.Code.Status()), problem.MediaType, len(body), body)
}

type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// listenAnew is told of each request that begins, before it is read.
func listenAnew(c net.Conn, state http.ConnState) {
	if own, ok := c.(*connection); ok && state == http.StateActive {
		own.understood.Store(false)
	}
}

func understood(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if own, ok := r.Context().Value(connectionKey{}).(*connection); ok {
			own.understood.Store(true)
		}
		next.ServeHTTP(w, r)
	})
}
