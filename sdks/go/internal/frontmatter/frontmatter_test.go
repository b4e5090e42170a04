package frontmatter

import (
	"reflect"
	"strings"
	"testing"
)

func TestFrontMatterIsSplitOff(t *testing.T) {
	for content, want := range map[string]Document{
		"---\nkey: value\n---\nbody":       {"body", map[string]any{"key": "value"}},
		"---\r\nkey: value\r\n---\r\nbody": {"body", map[string]any{"key": "value"}},
		"---\nlist: [a, 'b c']\nn: 3\n---\n": {"", map[string]any{
			"list": []string{"a", "b c"}, "n": "3"}},
		"---\nempty: []\nblank:\n---\nx": {"x", map[string]any{"empty": []string{}, "blank": ""}},
		"---\n---\nbody":                 {"body", map[string]any{}},
		"---\nq: \"a: b\"\n---\nx":       {"x", map[string]any{"q": "a: b"}},
		"---\nq: [half\n---\nx":          {"x", map[string]any{"q": "[half"}},
		"---\nkey: value\n---":           {"", map[string]any{"key": "value"}},
	} {
		if got := Parse(content); !reflect.DeepEqual(got, want) {
			t.Errorf("Parse(%q) = %v, want %v", content, got, want)
		}
	}
}

func TestMalformedFrontMatterIsOrdinaryText(t *testing.T) {
	for _, content := range []string{
		"plain",
		"---",
		"---\nkey: value\nbody",
		"---\nno colon\n---\nbody",
		"---\n  nested: x\n---\nbody",
		"text\n---\nkey: value\n---\n",
		"----\nkey: value\n----\n",
		"---\n" + strings.Repeat("k: v\n", 100_000),
	} {
		if got := Parse(content); !reflect.DeepEqual(got, Document{Text: content}) {
			t.Errorf("Parse(%.40q) = %.40v", content, got)
		}
	}
}
