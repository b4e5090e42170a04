package index

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"

	"github.com/go-json-experiment/json/jsontext"

	"memoryd/internal/embed"
	"memoryd/internal/wire"
)

// format changes when the logs of older daemons can no longer be used.
const format = "4"

// log is a file of records, each with its checksum. A write that a kill cuts off, and whatever else
// damages the file, costs the records that it touches; they are indexed again from the files.
type log struct {
	name    string
	file    *os.File
	header  []byte
	size    int64
	records int
	damaged bool

	// The size and the records when a rewrite failed: the next one waits until as much is added again.
	failedSize    int64
	failedRecords int
}

// record is a document as it is indexed, or says that there is none.
type record struct {
	Path     string         `json:"path"`
	Removed  bool           `json:"removed,omitzero"`
	Stamp    string         `json:"stamp,omitzero"`
	Title    *string        `json:"title,omitzero"`
	Tags     []string       `json:"tags,omitzero"`
	Metadata jsontext.Value `json:"metadata,omitzero"`
	Chunks   []string       `json:"chunks,omitzero"`

	vectors []embed.Vector
	size    int64 // in the log
}

// openLog opens a log or begins one, also in place of one of another format or embedder.
func openLog(name, embedder string) (*log, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	l := &log{name: name, file: file, header: fmt.Appendf(nil, "memoryd %s %q\n", format, embedder)}
	found := make([]byte, len(l.header))
	if _, err = file.ReadAt(found, 0); err == nil && bytes.Equal(found, l.header) {
		l.size, err = file.Seek(0, io.SeekEnd)
	} else {
		err = l.begin()
	}
	if err != nil {
		return nil, closing(file, err)
	}
	return l, nil
}

func closing(file *os.File, err error) error { return errors.Join(err, file.Close()) }

// begin empties the file but for its header.
func (l *log) begin() error {
	l.size, l.records = 0, 0
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	return l.write(l.header)
}

// write appends to the log. What a failed write leaves is overwritten by the next one, or found as
// damage.
func (l *log) write(content []byte) error {
	if _, err := l.file.WriteAt(content, l.size); err != nil {
		return errors.Join(err, l.file.Truncate(l.size))
	}
	l.size += int64(len(content))
	return nil
}

// append writes all records at once, and sets their sizes.
func (l *log) append(records []record) error {
	var content []byte
	for i := range records {
		before := len(content)
		var err error
		if content, err = records[i].appendTo(content); err != nil {
			return err
		}
		records[i].size = int64(len(content) - before)
	}
	if err := l.write(content); err != nil {
		return err
	}
	l.records += len(records)
	return nil
}

// A record begins with a mark, its checksum, and the sizes of its JSON and of its vectors.
const (
	mark       = "\x00rec"
	headerSize = len(mark) + 4 + 4 + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (r record) appendTo(content []byte) ([]byte, error) {
	start := len(content)
	encoded, err := wire.Marshal(r)
	if err != nil {
		return nil, err
	}
	content = append(content, mark...)
	content = append(content, 0, 0, 0, 0)
	content = binary.LittleEndian.AppendUint32(content, uint32(len(encoded)))
	vectors := 0
	for _, vector := range r.vectors {
		vectors += 4 * len(vector)
	}
	content = binary.LittleEndian.AppendUint32(content, uint32(vectors))
	content = append(content, encoded...)
	for _, vector := range r.vectors {
		for _, value := range vector {
			content = binary.LittleEndian.AppendUint32(content, math.Float32bits(value))
		}
	}
	sum := crc32.Checksum(content[start+len(mark)+4:], castagnoli)
	binary.LittleEndian.PutUint32(content[start+len(mark):], sum)
	return content, nil
}

// replay passes on the intact records, and looks for the next one where one is damaged.
func (l *log) replay(take func(record)) error {
	reader := bufio.NewReaderSize(nil, 1<<20)
	for at, behind := int64(len(l.header)), int64(-1); at < l.size; {
		if at != behind {
			reader.Reset(io.NewSectionReader(l.file, at, l.size-at))
		}
		r, err := readRecord(reader, l.size-at)
		switch {
		case err == nil:
			take(r)
			l.records++
			at += r.size
			behind = at
		case errors.Is(err, errDamaged):
			l.damaged = true
			if at, err = l.nextMark(at + 1); err != nil {
				return err
			}
		default:
			return err
		}
	}
	return nil
}

var errDamaged = errors.New("damaged")

func readRecord(reader io.Reader, left int64) (r record, err error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(reader, header[:]); err != nil {
		return r, damagedIfCut(err)
	}
	sum := binary.LittleEndian.Uint32(header[len(mark):])
	encoded := int64(binary.LittleEndian.Uint32(header[len(mark)+4:]))
	size := int64(headerSize) + encoded + int64(binary.LittleEndian.Uint32(header[len(mark)+8:]))
	if string(header[:len(mark)]) != mark || size > left {
		return r, errDamaged
	}
	content := make([]byte, size-int64(headerSize))
	if _, err := io.ReadFull(reader, content); err != nil {
		return r, damagedIfCut(err)
	}
	if crc32.Update(crc32.Checksum(header[len(mark)+4:], castagnoli), castagnoli, content) != sum {
		return r, errDamaged
	}
	if err := wire.Unmarshal(content[:encoded], &r); err != nil {
		return r, errDamaged
	}
	if values := content[encoded:]; len(values) > 0 {
		dims := len(values) / 4 / len(r.Chunks)
		for range r.Chunks {
			vector := make(embed.Vector, dims)
			for i := range vector {
				vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(values[4*i:]))
			}
			values = values[4*dims:]
			r.vectors = append(r.vectors, vector)
		}
	}
	r.size = size
	return r, nil
}

// damagedIfCut says that a file is damaged that ends too early.
func damagedIfCut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errDamaged
	}
	return err
}

// nextMark returns where the next record may begin, or the end of the log.
func (l *log) nextMark(at int64) (int64, error) {
	reader := bufio.NewReader(io.NewSectionReader(l.file, at, l.size-at))
	for ; ; at++ {
		next, err := reader.Peek(len(mark))
		if errors.Is(err, io.EOF) {
			return l.size, nil
		}
		if err != nil || string(next) == mark {
			return at, err
		}
		if _, err := reader.Discard(1); err != nil {
			return at, err
		}
	}
}

// A log is rewritten once most of it is not live, and more than this.
const (
	leastWaste      = 1024
	leastWasteBytes = 4 << 20
)

// wasteful reports whether the log should be rewritten, of which these documents and bytes are live.
func (l *log) wasteful(documents int, live int64) bool {
	return l.damaged || l.records-l.failedRecords > 2*documents+leastWaste ||
		l.size-l.failedSize > 2*live+leastWasteBytes
}

// rewrite replaces the file by one with these records.
func (l *log) rewrite(records iter.Seq[record]) (err error) {
	defer func() {
		if err != nil {
			l.damaged, l.failedSize, l.failedRecords = false, l.size, l.records
		}
	}()
	file, err := os.Create(l.name + ".new")
	if err != nil {
		return err
	}
	fresh := &log{name: l.name, file: file, header: l.header}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close(), os.Remove(file.Name()))
		}
	}()
	if err := fresh.begin(); err != nil {
		return err
	}
	for r := range records {
		if err := fresh.append([]record{r}); err != nil {
			return err
		}
	}
	if err := os.Rename(file.Name(), l.name); err != nil {
		return err
	}
	_ = l.file.Close() // which has no name any more
	*l = *fresh
	return nil
}

// Remove deletes the log of an index.
func Remove(file string) error {
	for _, name := range []string{file, file + ".new"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
