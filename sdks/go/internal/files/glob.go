package files

// Glob is a pattern of base names: `*` is any number of characters, `?` is one, anything else is
// itself.
type Glob struct {
	wanted  []rune
	nothing bool
}

// NewGlob reads a pattern. One that wants more characters than a name can have fits nothing, and is
// read no further.
func NewGlob(pattern string) *Glob {
	g := &Glob{}
	characters := 0
	for _, r := range pattern {
		if r != '*' {
			characters++
		} else if n := len(g.wanted); n > 0 && g.wanted[n-1] == '*' {
			continue // two fit what one does
		}
		if characters > segmentLimit {
			return &Glob{nothing: true}
		}
		g.wanted = append(g.wanted, r)
	}
	return g
}

// Match tells whether the whole name fits. After a mismatch only the last `*` is tried longer, so
// the work is bound by the product of the lengths, whatever the pattern.
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
