package frontmatter

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"memoryd/internal/vectortest"
)

func TestFrontMatterIsSplitOff(t *testing.T) {
	var vectors struct {
		Cases []struct {
			Text, Body string
			Metadata   map[string]any
		}
	}
	vectortest.Load(t, "frontmatter", &vectors)
	if len(vectors.Cases) == 0 {
		t.Fatal("no vectors")
	}
	for _, test := range vectors.Cases {
		got := Parse(test.Text)
		if got.Text != test.Body {
			t.Errorf("the body of %q is %q, want %q", test.Text, got.Text, test.Body)
		}
		if metadata := asJSON(t, got.Metadata); !reflect.DeepEqual(metadata, test.Metadata) {
			t.Errorf("the metadata of %q is %q, want %q", test.Text, metadata, test.Metadata)
		}
	}
}

// asJSON makes slices of strings comparable with those that were read from JSON.
func asJSON(t *testing.T, metadata map[string]any) map[string]any {
	t.Helper()
	encoded, err := json.Marshal(metadata)
	if err != nil {
		t.Fatal(err)
	}
	decoded := map[string]any{}
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	if decoded == nil {
		decoded = map[string]any{}
	}
	return decoded
}

// Eight megabytes in one request must not take minutes.
func TestFrontMatterIsParsedInLinearTime(t *testing.T) {
	for _, content := range []string{
		"---\n" + strings.Repeat("k: v\n", 400_000),
		"---\nk: [" + strings.Repeat("'a, ", 400_000) + "]\n",
		"---\nk: [" + strings.Repeat("'a\", \"", 400_000) + "]\n",
		"---\nk: ['" + strings.Repeat(" ", 800_000) + "' x]\n",
	} {
		if got := Parse(content); got.Text != content {
			t.Errorf("Parse(%.40q) has no ordinary text", content)
		}
		if got := Parse(content + "---\nbody"); got.Text != "body" {
			t.Errorf("Parse(%.40q) = %.40q", content, got.Text)
		}
	}
}
