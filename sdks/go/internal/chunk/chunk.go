// Package chunk cuts a document's text into the pieces that are indexed and ranked.
package chunk

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	wholeLimit = 131_072 // bytes up to which a text stays one chunk
	window     = 8_192   // bytes within which a longer text is cut
)

// Split cuts text into chunks that joined are text again; an empty text has none.
func Split(text string) []string {
	if text == "" {
		return nil
	}
	if len(text) <= wholeLimit {
		return []string{text}
	}
	var chunks []string
	for len(text) > window {
		end := cut(text)
		chunks = append(chunks, text[:end])
		text = text[end:]
	}
	return append(chunks, text)
}

// cut finds where a text longer than the window is cut: behind the last blank line inside the
// window, else behind the last newline, else at the last code point boundary.
func cut(text string) int {
	room := text[:window]
	newline := strings.LastIndexByte(room, '\n')
	for end := newline; end > 0; end = strings.LastIndexByte(room[:end], '\n') {
		if before := strings.TrimSuffix(room[:end], "\r"); strings.HasSuffix(before, "\n") {
			return end + 1
		}
	}
	if newline >= 0 {
		return newline + 1
	}
	end := window
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return end
}

// DocumentID is the first 32 hex digits of the path's SHA-256.
func DocumentID(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:16])
}

// ID names a chunk by its document and its place there.
func ID(documentID string, ordinal int) string {
	return documentID + "#" + strconv.Itoa(ordinal)
}
