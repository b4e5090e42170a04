package api

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"memoryd/internal/files"
	"memoryd/internal/moment"
	"memoryd/internal/problem"
	"memoryd/internal/wire"
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
	return wire.Or(value, "")
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
	if err := files.CheckPath(path); err != nil {
		c.refuse("%s%s", key, strings.TrimPrefix(problem.Of(err).Detail, "path"))
	}
	return path
}

// noteLimit is the maximum size of a note on a change, in bytes.
const noteLimit = 4096

// short validates an optional note.
func (c *checker) short(key string, value *string) {
	if len(wire.Or(value, "")) > noteLimit {
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
	word := wire.Or(value, words[0])
	if !slices.Contains(words, word) {
		c.refuse("%s: %q is none of %s", key, word, strings.Join(words, ", "))
	}
	return word
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

// base64 returns content that must be present, in the canonical encoding: others decode to the same
// bytes, with line ends or with non-zero bits that pad the last character.
func (c *checker) base64(key string, value *string) []byte {
	text := c.required(key, value)
	content, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") {
		c.refuse("%s: is not canonical base64", key)
	}
	return content
}

// object returns an object whose values are kept verbatim, or nil if it is missing or null.
func (c *checker) object(key string, raw jsontext.Value) (object wire.Object) {
	if err := wire.CheckNumbers(raw); err != nil {
		c.refuse("%s: %v", key, err)
	} else if raw != nil && wire.Unmarshal(raw, &object) != nil {
		c.refuse("%s: must be an object", key)
	}
	return object
}

// flag returns a boolean parameter, false if it is missing.
func (c *checker) flag(key string, from parameters) bool {
	value, ok := from[key]
	if ok && value != "true" && value != "false" {
		c.refuse("%s: must be true or false", key)
	}
	return value == "true"
}
