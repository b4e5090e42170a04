package wire

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Bytes is content in base64, in its canonical encoding; nil if it is null.
type Bytes []byte

// UnmarshalJSONFrom rejects the other encodings that decode to the same bytes: with line ends, or
// with non-zero bits that pad the last character.
func (b *Bytes) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	token, err := decoder.ReadToken()
	if err != nil {
		return err
	}
	if token.Kind() == 'n' {
		*b = nil
		return nil
	}
	if token.Kind() != '"' {
		return errors.New("must be a string")
	}
	text := token.String()
	decoded, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") {
		return errors.New("is not canonical base64")
	}
	*b = decoded
	return nil
}
