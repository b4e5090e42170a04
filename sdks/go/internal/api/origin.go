package api

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"memoryd/internal/problem"
)

// A web page can make a browser send requests to a daemon on the same machine, and by DNS rebinding
// under a host name of the page's own. A token would stop it; without one, these headers do, which a
// page cannot choose.
const (
	octet        = `(?:25[0-5]|(?:2[0-4]|1[0-9]|[1-9])?[0-9])`
	loopbackHost = `(?:localhost|127(?:\.` + octet + `){3}|\[::1\])(?::[0-9]{0,5})?`
)

var (
	loopbackAuthority = regexp.MustCompile(`^` + loopbackHost + `$`)
	loopbackOrigin    = regexp.MustCompile(`^https?://` + loopbackHost + `$`)
)

// refuseForeign refuses requests that a web page from elsewhere may have caused.
func (a *API) refuseForeign(next http.Handler) http.Handler {
	if a.Token != "" || !a.Loopback {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reason := foreign(r); reason != "" {
			turnAway(w, r, problem.New(problem.Forbidden, "%s; set a token to allow such requests", reason))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// foreign says why a request is not from this machine, empty if it may be.
func foreign(r *http.Request) string {
	// strings.ToLower, because (?i) would also match letters such as ſ.
	if !loopbackAuthority.MatchString(strings.ToLower(r.Host)) {
		return "the Host is not loopback"
	}
	origins := r.Header.Values("Origin")
	for _, origin := range origins {
		if !loopbackOrigin.MatchString(strings.ToLower(origin)) {
			return "the Origin is not loopback"
		}
	}
	if len(origins) == 0 && slices.Contains(r.Header.Values("Sec-Fetch-Site"), "cross-site") {
		return "the Sec-Fetch-Site is not loopback"
	}
	return ""
}
