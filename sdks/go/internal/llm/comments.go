package llm

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3/option"
)

// dropComments removes comments from event streams. Some services send `: PROCESSING` and a blank
// line to keep a connection open; openai-go up to v3.42 mistakes that for an event without data and
// fails to parse it.
func dropComments(request *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	response, err := next(request)
	if err == nil && strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		response.Body = &uncommented{Closer: response.Body, lines: bufio.NewReader(response.Body)}
	}
	return response, err
}

// uncommented reads a stream line by line, skipping comments and blank lines that do not end an
// event.
type uncommented struct {
	io.Closer
	lines   *bufio.Reader
	pending []byte
	inEvent bool
}

func (u *uncommented) Read(p []byte) (int, error) {
	for len(u.pending) == 0 {
		line, err := u.lines.ReadBytes('\n')
		isBlank := len(bytes.TrimRight(line, "\r\n")) == 0
		if !bytes.HasPrefix(line, []byte(":")) && (u.inEvent || !isBlank) {
			u.pending = line
			u.inEvent = !isBlank
		}
		if err != nil && len(u.pending) == 0 {
			return 0, err
		}
	}
	n := copy(p, u.pending)
	u.pending = u.pending[n:]
	return n, nil
}
