// Package moment reads and bounds the dates of requests and documents.
package moment

import (
	"regexp"
	"strings"
	"time"
)

// instant is the syntax of RFC 3339; time.Parse alone accepts one-digit hours and commas.
var instant = regexp.MustCompile(
	`^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// The first and the last second that RFC 3339 can express in every language; files may have other times.
var (
	first = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	last  = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// Bound returns the time in UTC, or the nearest one that RFC 3339 can express.
func Bound(t time.Time) time.Time {
	switch {
	case t.Before(first):
		return first
	case t.After(last):
		return last
	}
	return t.UTC()
}

// Parse reads YYYY-MM-DD, which is midnight in UTC, or an RFC 3339 date-time.
func Parse(text string) (time.Time, error) {
	layout := time.DateOnly
	if instant.MatchString(text) {
		layout = time.RFC3339
	}
	return time.Parse(layout, strings.ToUpper(text))
}
