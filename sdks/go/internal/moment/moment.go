// Package moment reads the dates of requests and documents.
package moment

import (
	"regexp"
	"strings"
	"time"
)

// instant is the syntax of RFC 3339; time.Parse alone accepts one-digit hours and commas.
var instant = regexp.MustCompile(
	`^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// Parse reads YYYY-MM-DD, which is midnight in UTC, or an RFC 3339 date-time.
func Parse(text string) (time.Time, error) {
	layout := time.DateOnly
	if instant.MatchString(text) {
		layout = time.RFC3339
	}
	return time.Parse(layout, strings.ToUpper(text))
}
