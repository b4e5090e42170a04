package text

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed stopwords.txt
var stopWordList string

var stopWords = func() map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(stopWordList) {
		set[word] = true
	}
	return set
}()

// WithoutStopWords returns the terms that are no stop words, in order, with duplicates.
func WithoutStopWords(terms []string) []string {
	return slices.DeleteFunc(slices.Clone(terms), func(term string) bool { return stopWords[term] })
}
