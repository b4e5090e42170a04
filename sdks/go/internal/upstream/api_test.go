package upstream

import (
	"slices"
	"strings"
	"testing"
)

func TestEventsWithoutDataAreNone(t *testing.T) {
	for _, test := range []struct {
		stream string
		want   []string
	}{
		{"", nil},
		{"data: 1\n\n", []string{"1"}},
		{"data:1\n\ndata: 2\n\n", []string{"1", "2"}},
		{"data: 1\ndata: 2\n\n", []string{"1\n2"}},
		{"data: 1\r\n\r\ndata: 2\r\r", []string{"1", "2"}},
		{"\ufeffdata: 1\n\n", []string{"1"}},
		{"\n\n\ndata: 1\n\n", []string{"1"}},
		{": comment\n\ndata: 1\n\n", []string{"1"}},
		{"data: 1\n: comment\n\n", []string{"1"}},
		{"event: ping\n\ndata: 1\n\n", []string{"1"}},
		{"id: 7\n\ndata: 1\n\n", []string{"1"}},
		{"retry: 10\n\ndata: 1\n\n", []string{"1"}},
		{"data\n\ndata: 1\n\n", []string{"1"}},
		{"data:\n\ndata: 1\n\n", []string{"1"}},
		{"event: delta\nid: 7\ndata: 1\n\n", []string{"1"}},
		{"data: 1\n\nevent: ping\n\n", []string{"1"}},
		{"data: 1\n\ndata: cut", []string{"1"}},
	} {
		var got []string
		for data, err := range Events(strings.NewReader(test.stream)) {
			if err != nil {
				t.Errorf("%q: %v", test.stream, err)
			}
			got = append(got, data)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, want %q", test.stream, got, test.want)
		}
	}
}

func TestEventThatIsTooLongIsAnError(t *testing.T) {
	failures := 0
	for _, err := range Events(strings.NewReader("data: " + strings.Repeat("x", longestEvent) + "\n\n")) {
		if err != nil {
			failures++
		}
	}
	if failures != 1 {
		t.Errorf("%d errors", failures)
	}
}
