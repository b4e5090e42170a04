package text

import "bytes"

// stem returns the stem of a token by Porter's algorithm (M. F. Porter, "An algorithm for suffix
// stripping", Program 14(3), 1980) as FTS5 applies it. It changes the token.
func stem(token []byte) []byte {
	if len(token) > longestToken {
		return token[:longestToken]
	}
	if len(token) < 3 || len(token) > longestStemmed {
		return token
	}
	token = stemParticiple(stemPlural(token))
	if last := len(token) - 1; token[last] == 'y' && hasVowel(token[:last]) {
		token[last] = 'i'
	}
	token = replaceSuffix(token, secondSuffixes, isLong)
	token = replaceSuffix(token, thirdSuffixes, isLong)
	token = replaceSuffix(token, fourthSuffixes, isVeryLong)
	return stemEnd(token)
}

type suffix struct{ old, new string }

// Of the suffixes of a step, the first that a token has counts.
var (
	secondSuffixes = []suffix{
		{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"},
		{"logi", "log"}, {"bli", "ble"}, {"alli", "al"}, {"entli", "ent"}, {"eli", "e"},
		{"ousli", "ous"}, {"ization", "ize"}, {"ation", "ate"}, {"ator", "ate"}, {"alism", "al"},
		{"iveness", "ive"}, {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"}, {"iviti", "ive"},
		{"biliti", "ble"},
	}
	thirdSuffixes = []suffix{
		{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"}, {"ful", ""},
		{"ness", ""},
	}
	fourthSuffixes = []suffix{
		{old: "al"}, {old: "ance"}, {old: "ence"}, {old: "er"}, {old: "ic"}, {old: "able"}, {old: "ible"},
		{old: "ant"}, {old: "ement"}, {old: "ment"}, {old: "ent"}, {old: "ion"}, {old: "ou"}, {old: "ism"},
		{old: "ate"}, {old: "iti"}, {old: "ous"}, {old: "ive"}, {old: "ize"},
	}
)

func replaceSuffix(token []byte, suffixes []suffix, applies func(stem []byte) bool) []byte {
	for _, s := range suffixes {
		rest := len(token) - len(s.old)
		if rest < 1 || string(token[rest:]) != s.old {
			continue
		}
		kept := token[:rest]
		if s.old == "ion" && kept[rest-1] != 's' && kept[rest-1] != 't' || !applies(kept) {
			return token
		}
		return append(kept, s.new...)
	}
	return token
}

func stemPlural(token []byte) []byte {
	n := len(token)
	switch {
	case token[n-1] != 's':
		return token
	case token[n-2] != 'e':
		if token[n-2] == 's' {
			return token
		}
	case n > 4 && token[n-4] == 's' && token[n-3] == 's', n > 3 && token[n-3] == 'i':
		return token[:n-2]
	}
	return token[:n-1]
}

func stemParticiple(token []byte) []byte {
	if kept, found := bytes.CutSuffix(token, []byte("eed")); found && len(kept) > 0 {
		if isLong(kept) {
			return token[:len(token)-1]
		}
		return token
	}
	kept, found := bytes.CutSuffix(token, []byte("ing"))
	if !found {
		kept, found = bytes.CutSuffix(token, []byte("ed"))
	}
	if !found || !hasVowel(kept) {
		return token
	}
	for _, s := range []suffix{{"at", "ate"}, {"bl", "ble"}, {"iz", "ize"}} {
		if len(kept) > len(s.old) && bytes.HasSuffix(kept, []byte(s.old)) {
			return append(kept, 'e')
		}
	}
	last := len(kept) - 1
	switch c := kept[last]; {
	case last > 0 && c == kept[last-1] && kindOf(c, 0) == consonant && c != 'l' && c != 's' && c != 'z':
		return kept[:last]
	case isShort(kept):
		return append(kept, 'e')
	}
	return kept
}

func stemEnd(token []byte) []byte {
	last := len(token) - 1
	if token[last] == 'e' && (isVeryLong(token[:last]) || measure(token[:last]) == 1 && !endsShort(token[:last])) {
		token = token[:last]
		last--
	}
	if last > 0 && token[last] == 'l' && token[last-1] == 'l' && isVeryLong(token[:last]) {
		token = token[:last]
	}
	return token
}

func isLong(stem []byte) bool     { return measure(stem) > 0 }
func isVeryLong(stem []byte) bool { return measure(stem) > 1 }
func isShort(stem []byte) bool    { return measure(stem) == 1 && endsShort(stem) }

// measure counts the vowels that a consonant follows, groups of them as one; two are all that matter.
func measure(stem []byte) int {
	count, before := 0, byte(0)
	for _, c := range stem {
		kind := kindOf(c, before)
		if before == vowel && kind == consonant {
			count++
		}
		before = kind
	}
	return count
}

func hasVowel(stem []byte) bool {
	before := byte(0)
	for _, c := range stem {
		if before = kindOf(c, before); before == vowel {
			return true
		}
	}
	return false
}

// endsShort reports whether the stem ends with a consonant, a vowel and a consonant other than w, x and y.
func endsShort(stem []byte) bool {
	var kinds [3]byte
	for _, c := range stem {
		kinds = [3]byte{kinds[1], kinds[2], kindOf(c, kinds[2])}
	}
	return kinds == [3]byte{consonant, vowel, consonant} && !bytes.ContainsAny(stem[len(stem)-1:], "wxy")
}

const (
	vowel     = 'v'
	consonant = 'c'
)

// kindOf returns whether a letter is a vowel or a consonant; y is a vowel after a consonant.
func kindOf(c, before byte) byte {
	if bytes.IndexByte([]byte("aeiou"), c) >= 0 || c == 'y' && before == consonant {
		return vowel
	}
	return consonant
}
