package chunk

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"memoryd/internal/vectortest"
)

// piece is `[string, times]`.
type piece struct {
	text  string
	times int
}

func (p *piece) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&p.text, &p.times})
}

func TestSplit(t *testing.T) {
	var vectors struct {
		Cases []struct {
			Text  []piece
			Bytes []int
			Note  string
		}
	}
	vectortest.Load(t, "chunking", &vectors)
	for _, test := range vectors.Cases {
		var text strings.Builder
		for _, p := range test.Text {
			text.WriteString(strings.Repeat(p.text, p.times))
		}
		chunks := Split(text.String())
		sizes := []int{}
		for _, chunk := range chunks {
			sizes = append(sizes, len(chunk))
		}
		if !slices.Equal(sizes, test.Bytes) {
			t.Errorf("%s: sizes %v, want %v", test.Note, sizes, test.Bytes)
		}
		if strings.Join(chunks, "") != text.String() {
			t.Errorf("%s: the chunks joined are not the text", test.Note)
		}
	}
}

func TestIDs(t *testing.T) {
	id := DocumentID("raw/a.md")
	if id != "c8480155bc556fa01b5beee00767f1f0" {
		t.Errorf("DocumentID = %s", id)
	}
	if got := ID(id, 3); got != id+"#3" {
		t.Errorf("ID = %s", got)
	}
}
