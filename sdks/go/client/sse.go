package client

import (
	"bufio"
	"bytes"
	"io"
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// eventReader reads server-sent events, as the HTML standard defines them.
type eventReader struct {
	reader *bufio.Reader
	line   []byte // reused by each line
	// A CR ends its line at once, because nothing may follow it for long; a LF behind it is then skipped.
	skipLF      bool
	isFirstLine bool
}

func newEventReader(reader io.Reader) *eventReader {
	return &eventReader{reader: bufio.NewReaderSize(reader, 1<<16), isFirstLine: true}
}

// next returns the next event that has data, which is not checked; its Data is not used again. The error is that of
// the reader: what is behind the last empty line is no event.
func (r *eventReader) next() (Event, error) {
	event := Event{Name: "message"}
	var data []byte
	for {
		line, err := r.readLine()
		if err != nil {
			return Event{}, err
		}
		if len(line) == 0 {
			if len(data) > 0 {
				event.Data = data[:len(data)-1]
				return event, nil
			}
			event.Name = "message"
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			data = append(append(data, value...), '\n')
		case "event":
			event.Name = "message"
			if len(value) > 0 {
				event.Name = string(value)
			}
		}
	}
}

// readLine returns the next line that has an end, without it; it is valid until the next call.
func (r *eventReader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		if _, err := r.reader.Peek(1); err != nil {
			return nil, err
		}
		read, _ := r.reader.Peek(r.reader.Buffered())
		if r.skipLF && read[0] == '\n' {
			r.skipLF = false
			_, _ = r.reader.Discard(1)
			continue
		}
		r.skipLF = false
		end := bytes.IndexAny(read, "\r\n")
		if end < 0 {
			r.line = append(r.line, read...)
			_, _ = r.reader.Discard(len(read))
			continue
		}
		r.line = append(r.line, read[:end]...)
		r.skipLF = read[end] == '\r'
		_, _ = r.reader.Discard(end + 1)
		if r.isFirstLine {
			r.isFirstLine = false
			return bytes.TrimPrefix(r.line, byteOrderMark), nil
		}
		return r.line, nil
	}
}
