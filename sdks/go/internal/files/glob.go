package files

// Glob is a pattern for base names: `*` matches any number of characters, `?` matches one, anything
// else matches itself.
type Glob struct {
	wanted  []rune
	nothing bool
}

// NewGlob parses a pattern. One that requires more characters than a name can have matches nothing
// and is not parsed further.
func NewGlob(pattern string) *Glob {
	g := &Glob{}
	characters := 0
	for _, r := range pattern {
		if r != '*' {
			characters++
		} else if n := len(g.wanted); n > 0 && g.wanted[n-1] == '*' {
			continue // `**` matches the same as `*`
		}
		if characters > segmentLimit {
			return &Glob{nothing: true}
		}
		g.wanted = append(g.wanted, r)
	}
	return g
}

// Match reports whether the whole name matches. After a mismatch only the last `*` is extended, so
// that the work is bounded by the product of the lengths, whatever the pattern.
func (g *Glob) Match(name string) bool {
	if g.nothing {
		return false
	}
	wanted, given := g.wanted, []rune(name)
	at, star, resume := 0, -1, 0
	for i := 0; i < len(given); {
		switch {
		case at < len(wanted) && wanted[at] == '*':
			star, resume = at, i
			at++
		case at < len(wanted) && (wanted[at] == '?' || wanted[at] == given[i]):
			at++
			i++
		case star >= 0:
			resume++
			at, i = star+1, resume
		default:
			return false
		}
	}
	for at < len(wanted) && wanted[at] == '*' {
		at++
	}
	return at == len(wanted)
}
