package wire

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// depthLimit is the contract's. The library's own limit of 10,000 does not suffice for input: a
// response nests it deeper and could not be encoded.
const depthLimit = 1000

// CheckDepth returns an error if JSON text is nested too deeply. It makes one pass over the bytes,
// without recursion, and does not require valid JSON.
func CheckDepth(data []byte) error {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > depthLimit {
				return errors.New("is nested deeper than " + strconv.Itoa(depthLimit) + " levels")
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// CheckNumbers returns an error if a number, at any depth, exceeds the range of a float64.
func CheckNumbers(raw jsontext.Value) error {
	decoder := jsontext.NewDecoder(strings.NewReader(string(raw)), jsontext.AllowDuplicateNames(true))
	for {
		token, err := decoder.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if token.Kind() != '0' {
			continue
		}
		if _, err := strconv.ParseFloat(token.String(), 64); err != nil {
			return errors.New("contains a number that is not a finite float64")
		}
	}
}

// Texts is a list of strings; nil if it is null.
type Texts []string

// UnmarshalJSONFrom rejects null elements, which a plain []string would decode as "".
func (t *Texts) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	var texts []*string
	if err := json.UnmarshalDecode(decoder, &texts); err != nil {
		return err
	}
	*t = nil
	if texts != nil {
		*t = make(Texts, 0, len(texts))
	}
	for _, text := range texts {
		if text == nil {
			return errors.New("must contain strings only")
		}
		*t = append(*t, *text)
	}
	return nil
}
