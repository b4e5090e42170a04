package index

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

const page = 4096

// filledIndex returns the file of a closed index of some documents, and its bytes.
func filledIndex(t *testing.T) (file string, whole []byte) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "b.sqlite")
	ix, err := Open(t.Context(), file, "fh256-1")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 40 {
		apply(t, ix, doc(fmt.Sprintf("%02d.md", n), wordsOf(n), "with a giraffe"))
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err = os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return file, whole
}

// requireSound opens the index and checks that each document of it is found, with its own text and vector.
func requireSound(t *testing.T, file, what string) int {
	t.Helper()
	ix, err := Open(t.Context(), file, "fh256-1")
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer func() { _ = ix.Close() }()
	stamps, err := ix.Stamps(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if counts := ix.Counts(); counts != (Counts{len(stamps), 2 * len(stamps), 2 * len(stamps)}) {
		t.Errorf("%s: %+v", what, counts)
	}
	for path := range maps.Keys(stamps) {
		var n int
		if _, err := fmt.Sscanf(path, "%d.md", &n); err != nil {
			t.Fatal(err)
		}
		query := wordsOf(n)
		if got := found(t, ix, query, Filter{})[0]; got != path {
			t.Errorf("%s: %s is found by the words of %s", what, got, path)
		}
		if got := best(t, ix, query); got != path {
			t.Errorf("%s: %s is found by the vector of %s", what, got, path)
		}
	}
	return len(stamps)
}

func TestSealedIndexIsTrusted(t *testing.T) {
	file, _ := filledIndex(t)
	if sealed, err := breakSeal(file); !sealed || err != nil {
		t.Errorf("%t, %v", sealed, err)
	}
	if sealed, err := breakSeal(file); sealed || err != nil {
		t.Errorf("broken: %t, %v", sealed, err)
	}
}

func TestIndexWithoutSealIsSalvaged(t *testing.T) {
	file, _ := filledIndex(t)
	if err := os.Remove(file + ".seal"); err != nil {
		t.Fatal(err)
	}
	if got := requireSound(t, file, "without seal"); got != 40 {
		t.Errorf("%d documents", got)
	}
}

func TestDamageToAnyPageIsNoticed(t *testing.T) {
	file, whole := filledIndex(t)
	damages := []func([]byte) []byte{
		func([]byte) []byte { return bytes.Repeat([]byte{0xde, 0xad}, page/2) },
		func([]byte) []byte { return make([]byte, page) },
		func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("zebra"), []byte("zobra")) },
		func(b []byte) []byte { b[page-9] ^= 1; return b },
	}
	for number := range len(whole) / page {
		damaged := bytes.Clone(whole)
		part := damaged[number*page : (number+1)*page]
		copy(part, damages[number%len(damages)](bytes.Clone(part)))
		if err := os.WriteFile(file, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		// Without a seal only what is read can show the damage.
		if err := os.Remove(file + ".seal"); err != nil {
			t.Fatal(err)
		}
		requireSound(t, file, fmt.Sprintf("page %d", number))
	}
}

func TestLetterThatChangedIsNoticed(t *testing.T) {
	file, whole := filledIndex(t)
	damaged := bytes.ReplaceAll(whole, []byte("zebra7 "), []byte("zobra7 "))
	if err := os.WriteFile(file, damaged, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := requireSound(t, file, "a letter"); got != 39 {
		t.Errorf("%d documents, want all but the damaged one", got)
	}
}

func TestTruncatedIndexIsReplaced(t *testing.T) {
	file, whole := filledIndex(t)
	for _, length := range []int{0, 1, 100, page, 3*page + 17} {
		if err := os.WriteFile(file, whole[:length], 0o644); err != nil {
			t.Fatal(err)
		}
		requireSound(t, file, fmt.Sprintf("%d bytes", length))
	}
}

// wordsOf returns words that no other document has; few of them share a bucket of the feature hash.
func wordsOf(n int) string { return fmt.Sprintf("zebra%d heron%d waits%d", n, 7*n, 13*n) }
