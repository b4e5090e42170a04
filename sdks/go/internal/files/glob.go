package files

// Match tells whether the whole name fits the pattern: `*` is any number of characters, `?` is one,
// anything else is itself. After a mismatch only the last `*` is tried longer, so the work is bound
// by the product of the lengths, whatever the pattern.
func Match(pattern, name string) bool {
	wanted, given := []rune(pattern), []rune(name)
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
