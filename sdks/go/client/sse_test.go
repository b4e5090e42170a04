package client

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func readEvents(t *testing.T, reader io.Reader) []string {
	t.Helper()
	events := newEventReader(reader)
	var texts []string
	for {
		event, err := events.next()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, event.Name+"="+string(event.Data))
	}
}

func TestEventsAreThoseOfTheStandardWhereverReadsCutThem(t *testing.T) {
	for name, test := range map[string]struct {
		stream string
		want   []string
	}{
		"LF":                  {"event: a\ndata: 1\n\ndata: 2\n\n", []string{"a=1", "message=2"}},
		"CRLF":                {"event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", []string{"a=1", "message=2"}},
		"CR":                  {"event: a\rdata: 1\r\rdata: 2\r\r", []string{"a=1", "message=2"}},
		"mixed":               {"event: a\rdata: 1\r\n\ndata: 2\n\r\n\r", []string{"a=1", "message=2"}},
		"lines of data":       {"data: 1\ndata:2\ndata\n\n", []string{"message=1\n2\n"}},
		"no data":             {"event: a\n\ndata: 1\n\n", []string{"message=1"}},
		"empty data":          {"data\n\n", []string{"message="}},
		"one space":           {"data:  1\n\n", []string{"message= 1"}},
		"byte order mark":     {"\ufeffdata: 1\n\n\ufeffdata: 2\n\ndata: \ufeff\n\n", []string{"message=1", "message=\ufeff"}},
		"other fields":        {": a\nid: 1\nretry: 2\nDATA: 3\ndata: 1\n\n", []string{"message=1"}},
		"last name":           {"event: a\nevent: b\ndata: 1\n\n", []string{"b=1"}},
		"empty name":          {"event: a\nevent\ndata: 1\n\n", []string{"message=1"}},
		"characters":          {"data: é灯🪔\u2028\u0085\v\f\n\n", []string{"message=é灯🪔\u2028\u0085\v\f"}},
		"without its end":     {"data: 1\n\ndata: 2\n", []string{"message=1"}},
		"without a line end":  {"data: 1\n\ndata: 2", []string{"message=1"}},
		"nothing but an end":  {"\n", nil},
		"nothing but a colon": {":", nil},
	} {
		t.Run(name, func(t *testing.T) {
			for cut := range len(test.stream) {
				reader := io.MultiReader(strings.NewReader(test.stream[:cut]), strings.NewReader(test.stream[cut:]))
				if got := readEvents(t, reader); !reflect.DeepEqual(got, test.want) {
					t.Errorf("cut at %d: got %q, want %q", cut, got, test.want)
				}
			}
			if got := readEvents(t, iotest.OneByteReader(strings.NewReader(test.stream))); !reflect.DeepEqual(got, test.want) {
				t.Errorf("byte by byte: got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAnEventThatEndsInCRDoesNotWaitForALF(t *testing.T) {
	reader := io.MultiReader(strings.NewReader("data: 1\r\r"), iotest.ErrReader(errors.New("read too far")))
	if event, err := newEventReader(reader).next(); err != nil || string(event.Data) != "1" {
		t.Errorf("got %q, %v", event.Data, err)
	}
}
