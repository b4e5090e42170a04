// Package frontmatter parses front matter: `key: string` and `key: [a, b]` lines between two `---`
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

var line = regexp.MustCompile(`^([A-Za-z0-9_.-]+):(.*)$`)

const (
	blanks = " \t"
	quotes = `"'`
)

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
		return unquote(raw)
	}
	items := []string{}
	if inner = trim(inner); inner == "" {
		return items
	}
	for {
		end := itemEnd(inner)
		items = append(items, unquote(trim(inner[:end])))
		if end == len(inner) {
			return items
		}
		inner = inner[end+1:]
	}
}

// itemEnd returns the position of the comma after the first item of a list, or the end of s. A comma
// inside a quoted item does not end it.
func itemEnd(s string) int {
	item := strings.TrimLeft(s, blanks)
	if item != "" && strings.IndexByte(quotes, item[0]) >= 0 {
		if _, after, closed := strings.Cut(item[1:], item[:1]); closed {
			after = strings.TrimLeft(after, blanks)
			if after == "" || after[0] == ',' {
				return len(s) - len(after)
			}
		}
	}
	if comma := strings.IndexByte(s, ','); comma >= 0 {
		return comma
	}
	return len(s)
}

// unquote removes a pair of quotes around raw; there are no escapes, so that no such quote is inside.
func unquote(raw string) string {
	if len(raw) < 2 || strings.IndexByte(quotes, raw[0]) < 0 {
		return raw
	}
	if inner, after, closed := strings.Cut(raw[1:], raw[:1]); closed && after == "" {
		return inner
	}
	return raw
}

func trim(s string) string { return strings.Trim(s, blanks) }
