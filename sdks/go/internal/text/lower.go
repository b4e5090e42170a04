package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// lower applies Unicode's full, language-independent mapping to lower case. strings.ToLower maps rune
// by rune: it ignores the final sigma and maps İ to one rune. cases.Lower of golang.org/x/text v0.30
// handles both, but missed a final sigma in 109 of 3,000 random texts, at the end of its 128-byte
// buffer.
func lower(s string) string {
	if !strings.ContainsAny(s, "Σİ") {
		return strings.ToLower(s)
	}
	var b strings.Builder
	b.Grow(len(s))
	for i, r := range s {
		switch {
		case r == 'İ':
			b.WriteString("i̇")
		case r == 'Σ' && isFinal(s[:i], s[i+len("Σ"):]):
			b.WriteRune('ς')
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// isFinal is Final_Sigma of the Unicode Standard, table 3-17: a cased letter before and none after,
// ignoring case-ignorable characters in between.
func isFinal(before, after string) bool {
	r, _ := utf8.DecodeLastRuneInString(strings.TrimRightFunc(before, isCaseIgnorable))
	if !isCased(r) {
		return false
	}
	r, _ = utf8.DecodeRuneInString(strings.TrimLeftFunc(after, isCaseIgnorable))
	return !isCased(r)
}

func isCased(r rune) bool {
	return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt, unicode.Other_Lowercase, unicode.Other_Uppercase)
}

func isCaseIgnorable(r rune) bool {
	// These runes have Word_Break MidLetter, MidNumLet or Single_Quote.
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) ||
		strings.ContainsRune("'.:·\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A", r)
}
