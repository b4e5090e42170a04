// Package files keeps documents as files: their paths, writing all or nothing, walking.
package files

import (
	"path"
	"strings"
	"unicode/utf8"

	"memoryd/internal/problem"
)

const (
	pathLimit    = 2048 // half of what Linux allows, the other half is the state folder's
	segmentLimit = 250  // file systems allow 255 bytes a name, and the sidecar adds `.json`
)

// CheckPath refuses what is no canonical relative POSIX path.
func CheckPath(p string) error {
	switch {
	case p == "" || len(p) > pathLimit:
		return problem.Invalid("path: must have 1 to %d bytes", pathLimit)
	case !utf8.ValidString(p):
		return problem.Invalid("path: %q is no UTF-8", p)
	case strings.ContainsAny(p, "\\\x00"):
		return problem.Invalid("path: %q holds a backslash or NUL", p)
	}
	for segment := range strings.SplitSeq(p, "/") {
		switch {
		case segment == "" || segment == "." || segment == "..":
			return problem.Invalid("path: %q is not a canonical relative path", p)
		case len(segment) > segmentLimit:
			return problem.Invalid("path: a segment has more than %d bytes", segmentLimit)
		}
	}
	return nil
}

// IsHidden tells whether a document is stored and never indexed.
func IsHidden(p string) bool {
	return strings.HasPrefix(path.Base(p), "_")
}
