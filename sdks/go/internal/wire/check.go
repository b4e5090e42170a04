package wire

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// depthLimit is the contract's. The library's own, 10,000, is no bound for what is taken in: an
// answer nests it deeper, and could not be written.
const depthLimit = 1000

// CheckDepth refuses text that, were it JSON, would be nested too deep. It takes a pass over the
// bytes, and no stack.
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

// CheckNumbers refuses numbers, however deep, that a float64 cannot hold.
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
			return errors.New("holds a number that is no finite float64")
		}
	}
}

// Texts is a list of strings; nil where it is null.
type Texts []string

// UnmarshalJSONFrom refuses null for a string, which a list of plain strings would take for "".
func (t *Texts) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	var given []*string
	if err := json.UnmarshalDecode(decoder, &given); err != nil {
		return err
	}
	*t = nil
	if given != nil {
		*t = make(Texts, 0, len(given))
	}
	for _, text := range given {
		if text == nil {
			return errors.New("must hold strings only")
		}
		*t = append(*t, *text)
	}
	return nil
}
