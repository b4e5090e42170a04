package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

const page = 4096

// filledIndex returns the file of a closed index of some documents, and its bytes.
func filledIndex(t *testing.T) (file string, whole []byte) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "b.log")
	ix, err := Open(file, "fh256-1")
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
	ix, err := Open(file, "fh256-1")
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer func() { _ = ix.Close() }()
	stamps := ix.Stamps()
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

func TestDamageAnywhereIsNoticed(t *testing.T) {
	file, whole := filledIndex(t)
	damages := []func([]byte) []byte{
		func([]byte) []byte { return bytes.Repeat([]byte{0xde, 0xad}, page/2) },
		func([]byte) []byte { return make([]byte, page) },
		func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("zebra"), []byte("zobra")) },
		func(b []byte) []byte { b[page-9] ^= 1; return b },
		func(b []byte) []byte { copy(b, mark+mark+mark); return b },
	}
	for number := range len(whole) / page {
		for _, damage := range damages {
			damaged := bytes.Clone(whole)
			part := damaged[number*page : (number+1)*page]
			copy(part, damage(bytes.Clone(part)))
			if err := os.WriteFile(file, damaged, 0o644); err != nil {
				t.Fatal(err)
			}
			requireSound(t, file, fmt.Sprintf("page %d", number))
		}
	}
}

func TestDamageCostsNoOtherDocument(t *testing.T) {
	file, whole := filledIndex(t)
	for at := bytes.Index(whole, []byte(mark)); at < len(whole); at += 499 {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 4
		if err := os.WriteFile(file, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the log is rewritten
			if got := requireSound(t, file, fmt.Sprintf("byte %d", at)); got != 39 {
				t.Errorf("byte %d: %d documents, want all but the damaged one", at, got)
			}
		}
	}
}

func TestTruncatedLogKeepsWhatIsWhole(t *testing.T) {
	file, whole := filledIndex(t)
	last := bytes.LastIndex(whole, []byte(mark))
	for length := 0; length < len(whole); length += 1 + min(last/97, max(last-length-1, 0)) {
		if err := os.WriteFile(file, whole[:length], 0o644); err != nil {
			t.Fatal(err)
		}
		documents := max(bytes.Count(whole[:length], []byte(mark))-1, 0)
		if got := requireSound(t, file, fmt.Sprintf("%d bytes", length)); got < documents {
			t.Errorf("%d bytes: %d documents, want %d", length, got, documents)
		}
	}
}

func TestLostRemovalBeforeVectorsOfOtherDimensions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.log")
	ix := newTestIndex(t, file)
	apply(t, ix, ofDimensions("a.md", 3))
	if err := ix.Apply(nil, "a.md"); err != nil {
		t.Fatal(err)
	}
	apply(t, ix, ofDimensions("b.md", 5))
	_ = ix.Close()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content[bytes.Index(content, []byte(`"removed"`))] ^= 1
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
	ix = newTestIndex(t, file)
	if got := slices.Collect(maps.Keys(ix.Stamps())); !slices.Equal(got, []string{"a.md"}) {
		t.Errorf("restored %q", got)
	}
	// The brain finds what its files lack, and what the index lacks.
	if err := ix.Apply(nil, "a.md"); err != nil {
		t.Fatal(err)
	}
	for n := range blockRows {
		apply(t, ix, ofDimensions(fmt.Sprint(n), 5))
	}
}

func TestLogThatCannotBeReadIsClosed(t *testing.T) {
	file, whole := filledIndex(t)
	unreadable, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	ix := newTestIndex(t, "")
	if err := ix.load(&log{name: file, file: unreadable, size: int64(len(whole))}); err == nil {
		t.Error("loaded")
	}
	if err := unreadable.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Close = %v", err)
	}
}

func TestFailedWriteChangesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.log")
	ix := newTestIndex(t, file)
	apply(t, ix, doc("a.md", "zebra"))
	writable := ix.log.file
	readOnly, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	ix.log.file = readOnly
	if err := ix.Apply([]Document{doc("b.md", "lion")}, "a.md"); err == nil {
		t.Fatal("applied")
	}
	ix.log.file = writable
	if got := found(t, ix, "zebra lion", Filter{}); !slices.Equal(got, []string{"a.md"}) {
		t.Errorf("found %q", got)
	}
	apply(t, ix, doc("c.md", "lion"))
	if got := found(t, newTestIndex(t, file), "zebra lion", Filter{}); !slices.Equal(got, []string{"a.md", "c.md"}) {
		t.Errorf("after a restart %q", got)
	}
}

func TestLogOfMostlyOldRecordsIsRewritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.log")
	ix := newTestIndex(t, file)
	for n := range 3 * leastWaste {
		apply(t, ix, doc("a.md", fmt.Sprint("zebra", n)), doc("b.md", "lion"))
	}
	if most := leastWaste + 2*2 + 2; ix.log.records > most || len(ix.slots) > most {
		t.Errorf("%d records, %d slots", ix.log.records, len(ix.slots))
	}
	for _, ix := range []*Index{ix, newTestIndex(t, file)} {
		want := fmt.Sprint("zebra", 3*leastWaste-1)
		if got := found(t, ix, want+" lion zebra5", Filter{}); len(got) != 2 || best(t, ix, want) != "a.md" {
			t.Errorf("found %q", got)
		}
	}
}

func TestLogOfALargeDocumentIsRewritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.log")
	ix := newTestIndex(t, file)
	large := ofDimensions("a.md", 3)
	apply(t, ix, doc("b.md", "lion"))
	if err := ix.Apply(nil, "b.md"); err != nil {
		t.Fatal(err)
	}
	requireBound := func(what string, live int64) {
		t.Helper()
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if ix.live != live || info.Size() != ix.log.size || info.Size() > 2*live+leastWasteBytes {
			t.Fatalf("%s: %d bytes, %d live, want %d live", what, info.Size(), ix.live, live)
		}
	}
	large.Chunks[0] = strings.Repeat("lion ", 1<<18)
	record, err := record{
		Path: large.Path, Stamp: large.Stamp, Metadata: jsontext.Value("{}"), Chunks: large.Chunks, vectors: large.Vectors,
	}.appendTo(nil)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 8 {
		apply(t, ix, large)
		requireBound(fmt.Sprint("round ", round), int64(len(record)))
	}
	_ = ix.Close()
	ix = newTestIndex(t, file)
	requireBound("reopened", int64(len(record)))
	paths := []string{large.Path}
	for n := range 3 {
		large.Path = fmt.Sprint(n)
		paths = append(paths, large.Path)
		apply(t, ix, large)
	}
	if err := ix.Apply(nil, paths...); err != nil {
		t.Fatal(err)
	}
	requireBound("emptied", 0)
	if ix.log.size != int64(len(ix.log.header)) {
		t.Errorf("an emptied log has %d bytes", ix.log.size)
	}
}

// attempts counts the warnings of rewrites that failed.
type attempts struct {
	slog.Handler
	count int
}

func (a *attempts) Enabled(context.Context, slog.Level) bool { return true }

func (a *attempts) Handle(context.Context, slog.Record) error {
	a.count++
	return nil
}

func TestRewriteThatFailedWaitsForAsMuchWaste(t *testing.T) {
	for _, test := range []struct {
		what    string
		damaged bool
		words   int
		changes int
		want    int
	}{
		{"many records", false, 1, 3 * leastWaste, 2},
		{"damage", true, 1, 100, 1},
		{"large records", false, leastWasteBytes / 10 / len("lion "), 30, 2},
	} {
		t.Run(test.what, func(t *testing.T) {
			counted := &attempts{}
			before := slog.Default()
			slog.SetDefault(slog.New(counted))
			t.Cleanup(func() { slog.SetDefault(before) })
			file := filepath.Join(t.TempDir(), "b.log")
			ix := newTestIndex(t, file)
			ix.log.damaged = test.damaged
			if err := os.Mkdir(file+".new", 0o755); err != nil {
				t.Fatal(err)
			}
			d := ofDimensions("a.md", 3)
			d.Chunks[0] = strings.Repeat("lion ", test.words)
			for range test.changes {
				apply(t, ix, d)
			}
			if counted.count != test.want {
				t.Errorf("%d attempts, want %d", counted.count, test.want)
			}
			if err := os.Remove(file + ".new"); err != nil {
				t.Fatal(err)
			}
			for ix.log.records > 1 && ix.log.records < 6*leastWaste {
				apply(t, ix, d)
			}
			if ix.log.records != 1 {
				t.Errorf("%d records are not rewritten", ix.log.records)
			}
		})
	}
}

// wordsOf returns words that no other document has; few of them share a bucket of the feature hash.
func wordsOf(n int) string { return fmt.Sprintf("zebra%d heron%d waits%d", n, 7*n, 13*n) }
