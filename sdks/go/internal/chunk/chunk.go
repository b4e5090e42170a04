// Package chunk splits a document's text into the chunks that are indexed and ranked.
package chunk

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	wholeLimit = 131_072 // a text of up to this many bytes stays one chunk
	window     = 8_192   // the maximum size of a chunk of a longer text, in bytes
)

// Split splits text into chunks whose concatenation is text; an empty text has no chunks.
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

// cut returns where to split a text longer than the window: after the last blank line inside the
// window, else after the last newline, else at the last code point boundary.
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

// DocumentID returns the first 32 hex digits of the path's SHA-256.
func DocumentID(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:16])
}

// ID returns the id of a chunk: its document's id and its ordinal.
func ID(documentID string, ordinal int) string {
	return documentID + "#" + strconv.Itoa(ordinal)
}
