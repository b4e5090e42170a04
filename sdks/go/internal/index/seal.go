package index

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"strconv"
)

// SQLite has no checksums: it notices a page that makes no sense, and not a letter that changed. So a
// file that was closed properly has a seal, the digest of all of its bytes. One without its seal, or
// with another digest, is not trusted: see salvage.

// seal seals a file that was closed properly. Without it, the file is only slower to open.
func seal(file string) error {
	digest, err := digestOf(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil // removed with its brain
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file+".seal", digest, 0o644)
}

// breakSeal reports whether the file is as it was when it was sealed. It may be written from now on.
func breakSeal(file string) (bool, error) {
	expected, err := os.ReadFile(file + ".seal")
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := os.Remove(file + ".seal"); err != nil {
		return false, err
	}
	if _, err := os.Stat(file + "-wal"); !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	digest, err := digestOf(file)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return bytes.Equal(digest, expected), err
}

func digestOf(file string) ([]byte, error) {
	content, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, content); err != nil {
		return nil, err
	}
	return hex.AppendEncode(nil, sum.Sum(nil)), nil
}

// checksum is the digest of what a document is indexed with; nil differs from empty.
func checksum(values ...[]byte) string {
	sum := sha256.New()
	for _, value := range values {
		if value == nil {
			_, _ = sum.Write([]byte("-"))
			continue
		}
		_, _ = sum.Write(append(strconv.AppendInt(nil, int64(len(value)), 10), ':'))
		_, _ = sum.Write(value)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// textOf returns the bytes of an optional text for checksum.
func textOf(text *string) []byte {
	if text == nil {
		return nil
	}
	return []byte(*text)
}
