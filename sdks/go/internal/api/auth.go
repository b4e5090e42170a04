package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"net/http"
	"strings"

	"memoryd/internal/problem"
)

// authenticate refuses requests without the token before looking at anything else.
func (a *API) authenticate(next http.Handler) http.Handler {
	if a.Token == "" {
		return next
	}
	// Digests have a fixed length, so that comparing them does not reveal the token's length.
	wanted := sha256.Sum256([]byte(a.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.EscapedPath() == "/healthz" {
			next.ServeHTTP(w, r)
			return
		}
		token := bearer(r.Header.Values("Authorization"))
		if token == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			turnAway(w, r, problem.New(problem.Unauthorized, "exactly one Authorization: Bearer <token> header is required"))
			return
		}
		digest := sha256.Sum256([]byte(token))
		if subtle.ConstantTimeCompare(digest[:], wanted[:]) == 0 {
			turnAway(w, r, problem.New(problem.Forbidden, "the token is wrong"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// turnAway answers at once and then discards the body, because many clients do not read the response
// before they have sent all of it.
func turnAway(w http.ResponseWriter, r *http.Request, err error) {
	if r.Header.Get("Expect") != "" {
		fail(w, r, err) // the client sends the body only after a 100 Continue
		return
	}
	controller := http.NewResponseController(w)
	_ = controller.EnableFullDuplex() // otherwise net/http reads up to 256 KiB of the body first
	fail(w, r, err)
	_ = controller.Flush()
	if _, err := io.CopyN(io.Discard, r.Body, drainLimit); !errors.Is(err, io.EOF) {
		// The rest of the body is on the connection, and net/http would read it while it waits for
		// the next request, which panics in full duplex.
		panic(http.ErrAbortHandler)
	}
}

// bearer returns the token of the Authorization header, empty unless there is exactly one.
func bearer(headers []string) string {
	if len(headers) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.Trim(token, " ")
}
