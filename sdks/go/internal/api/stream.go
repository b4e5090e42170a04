package api

import (
	"fmt"
	"net/http"
	"time"

	"memoryd/internal/wire"
)

// stalledAfter is how long a client may leave an event unread before it counts as disconnected.
const stalledAfter = 2 * time.Minute

// stream is a response of server-sent events.
type stream struct {
	w          http.ResponseWriter
	controller *http.ResponseController
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	return &stream{w: w, controller: http.NewResponseController(w)}
}

// send writes one event and flushes it. The data is one line, because JSON escapes line ends.
func (s *stream) send(event string, data any) error {
	encoded, err := wire.Marshal(data)
	if err != nil {
		return err
	}
	return s.write("event: %s\ndata: %s\n\n", event, encoded)
}

func (s *stream) write(format string, args ...any) error {
	if err := s.controller.SetWriteDeadline(time.Now().Add(stalledAfter)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.w, format, args...); err != nil {
		return err
	}
	return s.controller.Flush()
}

// end clears the deadline, so that the connection can serve its next request.
func (s *stream) end() { _ = s.controller.SetWriteDeadline(time.Time{}) }
