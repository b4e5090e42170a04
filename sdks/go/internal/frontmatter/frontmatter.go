// Package frontmatter parses front matter: `key: scalar` and `key: [a, b]` lines between two `---`
// lines at the start of a document.
package frontmatter

import (
	"regexp"
	"strings"
)

// Document is a file's text and metadata. Metadata values are strings and slices of strings.
type Document struct {
	Text     string
	Metadata map[string]any
}

var line = regexp.MustCompile(`^([A-Za-z0-9_.-]+):[ \t]*(.*)$`)

// Parse splits off the front matter; if it is malformed, all of content is ordinary text.
func Parse(content string) Document {
	plain := Document{Text: content}
	first, rest, found := strings.Cut(content, "\n")
	if !found || strings.TrimSuffix(first, "\r") != "---" {
		return plain
	}
	metadata := map[string]any{}
	for rest != "" {
		var current string
		current, rest, _ = strings.Cut(rest, "\n")
		current = strings.TrimSuffix(current, "\r")
		if current == "---" {
			return Document{Text: rest, Metadata: metadata}
		}
		match := line.FindStringSubmatch(current)
		if match == nil {
			return plain
		}
		metadata[match[1]] = value(trim(match[2]))
	}
	return plain
}

func value(raw string) any {
	inner, isList := strings.CutPrefix(raw, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !isList || !closed {
		return scalar(raw)
	}
	items := []string{}
	if inner = trim(inner); inner != "" {
		for item := range strings.SplitSeq(inner, ",") {
			items = append(items, scalar(trim(item)))
		}
	}
	return items
}

func scalar(raw string) string {
	if last := len(raw) - 1; last >= 1 && raw[0] == raw[last] && (raw[0] == '"' || raw[0] == '\'') {
		return raw[1:last]
	}
	return raw
}

func trim(s string) string { return strings.Trim(s, " \t") }
