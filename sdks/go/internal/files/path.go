// Package files stores documents as files: paths, atomic changes, listing and walking.
package files

import (
	"path"
	"strings"
	"unicode/utf8"

	"memoryd/internal/problem"
)

const (
	pathLimit    = 2048 // half of what Linux allows; the other half is for the state folder
	segmentLimit = 250  // file systems allow 255 bytes per name, and the sidecar adds `.json`
)

// CheckPath returns an error unless p is a canonical relative POSIX path within the limits.
func CheckPath(p string) error {
	switch {
	case p == "" || len(p) > pathLimit:
		return problem.Invalid("path: must have 1 to %d bytes", pathLimit)
	case !utf8.ValidString(p):
		return problem.Invalid("path: %q is not UTF-8", p)
	case strings.ContainsAny(p, "\\\x00"):
		return problem.Invalid("path: %q contains a backslash or NUL", p)
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

// IsHidden reports whether a document is stored but never indexed.
func IsHidden(p string) bool {
	return strings.HasPrefix(path.Base(p), "_")
}
