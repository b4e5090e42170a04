// Package text splits text into terms: the tokenization that queries, the feature hash and the fake
// reader share.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// queryTermLimit is how many terms of a query a search uses.
const queryTermLimit = 256

// NFKC returns s in Unicode normalization form KC.
func NFKC(s string) string { return norm.NFKC.String(s) }

// Terms returns the lower-case runs of at least two letters or digits, in order, with duplicates.
func Terms(s string) []string {
	runs := strings.FieldsFunc(lower(NFKC(s)), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r)
	})
	terms := runs[:0]
	for _, run := range runs {
		if utf8.RuneCountInString(run) >= 2 {
			terms = append(terms, run)
		}
	}
	return terms
}

// QueryTerms returns the terms that a search for s uses.
func QueryTerms(s string) []string {
	terms := Terms(s)
	return terms[:min(len(terms), queryTermLimit)]
}
