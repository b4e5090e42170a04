package files

import "slices"

// Glob is a pattern for base names: `*` matches any number of characters, `?` matches one, anything
// else matches itself.
type Glob []rune

// NewGlob parses a pattern; the result is never nil.
func NewGlob(pattern string) Glob {
	// `**` matches the same as `*`.
	return slices.CompactFunc([]rune(pattern), func(a, b rune) bool { return a == '*' && b == '*' })
}

// Match reports whether the whole name matches. After a mismatch only the last `*` is extended, so
// that the work is bounded by the square of the length of the name, whatever the pattern.
func (g Glob) Match(name string) bool {
	given := []rune(name)
	at, star, resume := 0, -1, 0
	for i := 0; i < len(given); {
		switch {
		case at < len(g) && g[at] == '*':
			star, resume = at, i
			at++
		case at < len(g) && (g[at] == '?' || g[at] == given[i]):
			at++
			i++
		case star >= 0:
			resume++
			at, i = star+1, resume
		default:
			return false
		}
	}
	for at < len(g) && g[at] == '*' {
		at++
	}
	return at == len(g)
}
