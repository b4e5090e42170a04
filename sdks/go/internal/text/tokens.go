package text

import (
	_ "embed"
	"iter"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// The longest tokens, in bytes: FTS5 cuts a longer one, and leaves one of more than 64 as it is.
const (
	longestToken   = 32_768
	longestStemmed = 64
)

// Tokens yields the tokens of s in NFKC as SQLite's `porter unicode61` finds them. A token is valid
// until the next one.
func Tokens(s string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var buffer []byte
		for _, r := range NFKC(s) {
			folded := fold(r)
			switch {
			case folded > 0:
				buffer = utf8.AppendRune(buffer, folded)
			case folded == separates && len(buffer) > 0:
				if !yield(stem(buffer)) {
					return
				}
				buffer = buffer[:0]
			}
		}
		if len(buffer) > 0 {
			yield(stem(buffer))
		}
	}
}

// separates is what a rune becomes that is not part of a token; 0 is that of one that leaves nothing.
const separates = -1

func fold(r rune) rune {
	if r < utf8.RuneSelf {
		return ascii[r]
	}
	if page := folds()[r>>8]; page != nil {
		return page[r&0xFF]
	}
	return separates
}

var ascii = func() (table [utf8.RuneSelf]rune) {
	for r := range table {
		switch c := rune(r); {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z':
			table[r] = c
		case 'A' <= c && c <= 'Z':
			table[r] = c + 'a' - 'A'
		default:
			table[r] = separates
		}
	}
	return table
}()

//go:embed unicode61.txt
var unicode61 string

// folds reads the table that scripts/tokenizer.py writes, which says what its lines mean.
var folds = sync.OnceValue(func() *[utf8.MaxRune>>8 + 1]*[256]rune {
	var pages [utf8.MaxRune>>8 + 1]*[256]rune
	set := func(r, folded rune) {
		page := pages[r>>8]
		if page == nil {
			page = new([256]rune)
			for i := range page {
				page[i] = separates
			}
			pages[r>>8] = page
		}
		page[r&0xFF] = folded
	}
	for line := range strings.Lines(unicode61) {
		fields := strings.Fields(line)
		from, to, step := hex(fields[0]), hex(fields[1]), rune(1)
		if len(fields) == 4 {
			step = hex(fields[2])
		}
		for r := from; r <= to; r += step {
			switch len(fields) {
			case 2:
				set(r, r)
			case 3:
				set(r, 0)
			default:
				set(r, r+hex(fields[3]))
			}
		}
	}
	return &pages
})

func hex(digits string) rune {
	number, err := strconv.ParseInt(digits, 16, 32)
	if err != nil {
		panic(err) // the table is part of the program
	}
	return rune(number)
}
