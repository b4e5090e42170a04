package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"memoryd/internal/files"
	"memoryd/internal/problem"
)

// parameters are those of a query that a route knows.
type parameters map[string]string

// readParameters is stricter than url.ParseQuery, which takes names twice and any bytes, and refuses
// the semicolon, which form encoding leaves as it is.
func readParameters(r *http.Request, known ...string) (parameters, error) {
	given := parameters{}
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
		if _, twice := given[name]; twice {
			return nil, problem.Invalid("%s: stands there twice", name)
		}
		given[name] = value
	}
	return given, nil
}

func unescape(raw string) (string, error) {
	text, err := url.QueryUnescape(raw)
	if err != nil {
		return "", problem.Invalid("a parameter holds an escape that is none")
	}
	if !utf8.ValidString(text) {
		return "", problem.Invalid("a parameter is no UTF-8")
	}
	return text, nil
}

// flag is false where it is not given.
func (p parameters) flag(name string) (bool, error) {
	value, given := p[name]
	if given && value != "true" && value != "false" {
		return false, problem.Invalid("%s: neither true nor false", name)
	}
	return value == "true", nil
}

// pathParameter is the path that most routes of documents want.
func pathParameter(r *http.Request) (string, error) {
	given, err := readParameters(r, "path")
	if err != nil {
		return "", err
	}
	if given["path"] == "" {
		return "", problem.Invalid("path: missing")
	}
	return given["path"], files.CheckPath(given["path"])
}

// checkPath is files.CheckPath for a path of another name.
func checkPath(key, path string) error {
	if err := files.CheckPath(path); err != nil {
		return problem.Invalid("%s%s", key, strings.TrimPrefix(problem.Of(err).Detail, "path"))
	}
	return nil
}
