// Package wire encodes and decodes JSON by the contract's rules: names are case-sensitive, UTF-8 and
// surrogates are checked, the last of repeated names wins, and raw values are kept verbatim.
package wire

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Object is a JSON object whose values are kept verbatim.
type Object map[string]jsontext.Value

var (
	reading = jsontext.AllowDuplicateNames(true)
	writing = json.JoinOptions(
		json.Deterministic(true),           // equal responses have equal bytes
		jsontext.AllowDuplicateNames(true), // inside raw values
		jsontext.AllowInvalidUTF8(true),    // becomes U+FFFD; a file may have been written by hand
	)
)

// Unmarshal decodes one JSON value.
func Unmarshal(data []byte, into any) error { return json.Unmarshal(data, into, reading) }

// Value decodes a value; it returns the zero value if the JSON is missing or of another type.
func Value[T any](raw jsontext.Value) T {
	var value T
	if Unmarshal(raw, &value) != nil {
		var none T
		return none
	}
	return value
}

// Or returns an optional value, or the fallback if it is missing.
func Or[T any](value *T, fallback T) T {
	if value == nil {
		return fallback
	}
	return *value
}

// Marshal encodes one JSON value, on one line.
func Marshal(value any) ([]byte, error) { return json.Marshal(value, writing) }
