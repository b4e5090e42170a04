package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"net/http"
	"strings"

	"memoryd/internal/problem"
)

// authenticate refuses requests without the token before anything of them is looked at.
func (a *API) authenticate(next http.Handler) http.Handler {
	if a.Token == "" {
		return next
	}
	// Digests are of one length, so that comparing them tells nothing of the token's.
	wanted := sha256.Sum256([]byte(a.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.EscapedPath() == "/healthz" {
			next.ServeHTTP(w, r)
			return
		}
		token := bearer(r.Header.Values("Authorization"))
		if token == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			turnAway(w, r, problem.New(problem.Unauthorized, "one header Authorization: Bearer <token> is wanted"))
			return
		}
		given := sha256.Sum256([]byte(token))
		if subtle.ConstantTimeCompare(given[:], wanted[:]) == 0 {
			turnAway(w, r, problem.New(problem.Forbidden, "another token is wanted"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// turnAway answers at once, and then throws the body away: many clients look at no answer before
// they have sent it all.
func turnAway(w http.ResponseWriter, r *http.Request, err error) {
	if r.Header.Get("Expect") != "" {
		fail(w, r, err) // the body waits to be asked for
		return
	}
	controller := http.NewResponseController(w)
	_ = controller.EnableFullDuplex() // or net/http would read a body of up to 256 KiB first
	fail(w, r, err)
	_ = controller.Flush()
	_, _ = io.CopyN(io.Discard, r.Body, drainLimit)
}

// bearer is the token of the one header that there must be, or empty.
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
