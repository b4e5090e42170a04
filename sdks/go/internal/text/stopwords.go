package text

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed stopwords.txt
var stopWordList string

var stopWords = Set(strings.Fields(stopWordList))

// Set returns the set of some words; nil for nil.
func Set(words []string) map[string]bool {
	if words == nil {
		return nil
	}
	set := make(map[string]bool, len(words))
	for _, word := range words {
		set[word] = true
	}
	return set
}

// WithoutStopWords returns the terms that are no stop words, in order, with duplicates.
func WithoutStopWords(terms []string) []string {
	return slices.DeleteFunc(slices.Clone(terms), func(term string) bool { return stopWords[term] })
}
