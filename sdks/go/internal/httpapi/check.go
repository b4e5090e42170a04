package httpapi

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"memoryd/internal/problem"
)

// checker reads values and remembers the first that breaks the contract.
type checker struct{ err error }

func (c *checker) refuse(format string, args ...any) {
	if c.err == nil {
		c.err = problem.Invalid(format, args...)
	}
}

// required is a string that must be given.
func (c *checker) required(key string, value *string) string {
	if value == nil {
		c.refuse("%s: missing", key)
	}
	return optional(value)
}

// filled is a string that must be given and not blank.
func (c *checker) filled(key string, value *string) string {
	given := c.required(key, value)
	if strings.TrimSpace(given) == "" {
		c.refuse("%s: must not be blank", key)
	}
	return given
}

// path is a canonical path that must be given.
func (c *checker) path(key string, value *string) string {
	given := c.required(key, value)
	if err := checkPath(key, given); err != nil {
		c.refuse("%s", problem.Of(err).Detail)
	}
	return given
}

// noteLimit is the bytes of what a change may be told with.
const noteLimit = 4096

// short is a string that may be given, and is a note only.
func (c *checker) short(key string, value *string) {
	if len(optional(value)) > noteLimit {
		c.refuse("%s: has more than %d bytes", key, noteLimit)
	}
}

// within is an integer of a range, or the fallback where it is not given.
func (c *checker) within(key string, value *integer, fallback, low, high int) int {
	if value == nil {
		return fallback
	}
	given := int(*value)
	if given < low || given > high {
		c.refuse("%s: must be in %d…%d", key, low, high)
	}
	return given
}

// positive is an integer in 1…high, or nil where it is not given.
func (c *checker) positive(key string, value *integer, high int) *int {
	if value == nil {
		return nil
	}
	given := c.within(key, value, 0, 1, high)
	return &given
}

// oneOf is one of a few words, or the first where it is not given.
func (c *checker) oneOf(key string, value *string, words ...string) string {
	if value == nil {
		return words[0]
	}
	if !slices.Contains(words, *value) {
		c.refuse("%s: %q is none of %s", key, *value, strings.Join(words, ", "))
	}
	return *value
}

// instant is the shape of RFC 3339; time.Parse alone takes hours of one digit, and commas.
var instant = regexp.MustCompile(
	`^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// moment is a date or a date-time, or empty where it is not given.
func (c *checker) moment(key string, value *string) string {
	if value == nil {
		return ""
	}
	layout := time.DateOnly
	if instant.MatchString(*value) {
		layout = time.RFC3339
	}
	if _, err := time.Parse(layout, strings.ToUpper(*value)); err != nil {
		c.refuse("%s: neither YYYY-MM-DD nor an RFC 3339 date-time", key)
	}
	return *value
}

// optional is a string, or empty where it is not given.
func optional(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}
