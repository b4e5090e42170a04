package api

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"memoryd/internal/problem"
	"memoryd/internal/wire"
)

// decode reads the JSON object that the request's body must be.
func decode(r *http.Request, into any) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if kind := jsontext.Value(body).Kind(); kind != '{' {
		return problem.Invalid("the body must be a JSON object")
	}
	if err := wire.CheckDepth(body); err != nil {
		return problem.Invalid("the body %v", err)
	}
	if err := wire.Unmarshal(body, into); err != nil {
		return problem.Invalid("%s", describe("", err))
	}
	return nil
}

// readEach decodes and checks one element of a list after the other: the first that is invalid is
// named, whatever is wrong with it.
func readEach[B, T any](list string, elements []jsontext.Value, read func(B) (T, error)) ([]T, error) {
	values := make([]T, len(elements))
	for i, element := range elements {
		place := fmt.Sprintf("%s[%d]", list, i)
		var body B
		err := wire.Unmarshal(element, &body)
		if err != nil {
			return nil, problem.Invalid("%s", describe(place, err))
		}
		if values[i], err = read(body); err != nil {
			return nil, problem.Invalid("%s.%s", place, problem.Of(err).Detail)
		}
	}
	return values, nil
}

// describe names the invalid key below a place, for example `documents[3].tags`.
func describe(place string, err error) string {
	var mismatch *json.SemanticError
	if !errors.As(err, &mismatch) {
		return "no JSON: " + err.Error()
	}
	var key strings.Builder
	key.WriteString(place)
	for token := range mismatch.JSONPointer.Tokens() {
		if _, err := strconv.Atoi(token); err == nil {
			key.WriteString("[" + token + "]")
			continue
		}
		if key.Len() > 0 {
			key.WriteByte('.')
		}
		key.WriteString(token)
	}
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return key.String() + ": not known here"
	case mismatch.Err != nil:
		return key.String() + ": " + mismatch.Err.Error()
	default:
		return key.String() + ": must not be a " + mismatch.JSONKind.String()
	}
}

// integer accepts every JSON number without a fraction, however it is written.
type integer int

func (i *integer) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	raw, err := decoder.ReadValue()
	if err != nil {
		return err
	}
	value, err := strconv.ParseFloat(string(raw), 64)
	if raw.Kind() != '0' || err != nil || value != math.Trunc(value) || math.Abs(value) > math.MaxInt32 {
		return errors.New("must be an integer below 2^31")
	}
	*i = integer(value)
	return nil
}
