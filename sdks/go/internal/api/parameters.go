package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"memoryd/internal/problem"
)

// parameters are the query parameters that a route knows.
type parameters map[string]string

// readParameters is stricter than url.ParseQuery, which accepts repeated names and any bytes; and it
// accepts the semicolon, which form encoding does not escape.
func readParameters(r *http.Request, known ...string) (parameters, error) {
	values := parameters{}
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err := unescape(rawName)
		if err != nil {
			return nil, err
		}
		value, err := unescape(rawValue)
		if err != nil {
			return nil, problem.Invalid("%s: %s", name, problem.Of(err).Detail)
		}
		if !slices.Contains(known, name) {
			continue
		}
		if _, twice := values[name]; twice {
			return nil, problem.Invalid("%s: occurs twice", name)
		}
		values[name] = value
	}
	return values, nil
}

func unescape(raw string) (string, error) {
	text, err := url.QueryUnescape(raw)
	if err != nil {
		return "", problem.Invalid("a parameter contains an invalid escape")
	}
	if !utf8.ValidString(text) {
		return "", problem.Invalid("a parameter is not UTF-8")
	}
	return text, nil
}
