package index

import (
	"slices"
	"strings"

	"memoryd/internal/text"
)

// Filter says which documents a search may return. A nil list does not restrict, an empty one allows
// nothing.
type Filter struct {
	Prefixes []string // the path must start with all of them
	Paths    []string
	Tags     []string
	Sessions []string
}

// compiled turns the filter into a predicate, with lists as sets.
func (f Filter) compiled() func(*document) bool {
	paths, tags, sessions := text.Set(f.Paths), text.Set(f.Tags), text.Set(f.Sessions)
	return func(doc *document) bool {
		for _, prefix := range f.Prefixes {
			if !strings.HasPrefix(doc.path, prefix) {
				return false
			}
		}
		return (paths == nil || paths[doc.path]) &&
			(sessions == nil || doc.session != nil && sessions[*doc.session]) &&
			(tags == nil || slices.ContainsFunc(doc.tags, func(tag string) bool { return tags[tag] }))
	}
}
