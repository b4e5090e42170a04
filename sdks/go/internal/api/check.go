package api

import (
	"slices"
	"strings"

	"memoryd/internal/moment"
	"memoryd/internal/problem"
)

// checker reads values and remembers the first violation of the contract.
type checker struct{ err error }

func (c *checker) refuse(format string, args ...any) {
	if c.err == nil {
		c.err = problem.Invalid(format, args...)
	}
}

// required returns a string that must be present.
func (c *checker) required(key string, value *string) string {
	if value == nil {
		c.refuse("%s: missing", key)
	}
	return optional(value)
}

// filled returns a string that must be present and not blank.
func (c *checker) filled(key string, value *string) string {
	text := c.required(key, value)
	if strings.TrimSpace(text) == "" {
		c.refuse("%s: must not be blank", key)
	}
	return text
}

// path returns a canonical path that must be present.
func (c *checker) path(key string, value *string) string {
	path := c.required(key, value)
	if err := checkPath(key, path); err != nil {
		c.refuse("%s", problem.Of(err).Detail)
	}
	return path
}

// noteLimit is the maximum size of a note on a change, in bytes.
const noteLimit = 4096

// short validates an optional note.
func (c *checker) short(key string, value *string) {
	if len(optional(value)) > noteLimit {
		c.refuse("%s: has more than %d bytes", key, noteLimit)
	}
}

// within returns an integer in a range, or the fallback if it is missing.
func (c *checker) within(key string, value *integer, fallback, low, high int) int {
	if value == nil {
		return fallback
	}
	n := int(*value)
	if n < low || n > high {
		c.refuse("%s: must be in %d…%d", key, low, high)
	}
	return n
}

// positive returns an integer in 1…high, or nil if it is missing.
func (c *checker) positive(key string, value *integer, high int) *int {
	if value == nil {
		return nil
	}
	n := c.within(key, value, 0, 1, high)
	return &n
}

// number returns a number in a range, which must be present.
func (c *checker) number(key string, value *float64, low, high float64) float64 {
	if value == nil || *value < low || *value > high {
		c.refuse("%s: must be a number in %v…%v", key, low, high)
		return low
	}
	return *value
}

// oneOf returns one of a few words, or the first if it is missing.
func (c *checker) oneOf(key string, value *string, words ...string) string {
	if value == nil {
		return words[0]
	}
	if !slices.Contains(words, *value) {
		c.refuse("%s: %q is none of %s", key, *value, strings.Join(words, ", "))
	}
	return *value
}

// moment returns a date or a date-time, or an empty string if it is missing.
func (c *checker) moment(key string, value *string) string {
	if value == nil {
		return ""
	}
	if _, err := moment.Parse(*value); err != nil {
		c.refuse("%s: neither YYYY-MM-DD nor an RFC 3339 date-time", key)
	}
	return *value
}

// optional returns a string, or an empty one if it is missing.
func optional(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}
