// Package wire is JSON as the contract has it: names in their exact case, UTF-8 and surrogates
// checked, of a name that stands twice the last, raw values kept as they were given.
package wire

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Object is a JSON object whose values are kept as they were given.
type Object map[string]jsontext.Value

var (
	reading = jsontext.AllowDuplicateNames(true)
	writing = json.JoinOptions(
		json.Deterministic(true),           // the same answer twice is the same bytes
		jsontext.AllowDuplicateNames(true), // inside raw values
		jsontext.AllowInvalidUTF8(true),    // becomes U+FFFD; a file may have been written by hand
	)
)

// Unmarshal reads one JSON value.
func Unmarshal(data []byte, into any) error { return json.Unmarshal(data, into, reading) }

// Marshal writes one JSON value, on one line.
func Marshal(value any) ([]byte, error) { return json.Marshal(value, writing) }
