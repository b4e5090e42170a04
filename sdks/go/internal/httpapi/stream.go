package httpapi

import (
	"fmt"
	"net/http"

	"memoryd/internal/wire"
)

// stream is an answer of server-sent events.
type stream struct {
	w          http.ResponseWriter
	controller *http.ResponseController
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	return &stream{w: w, controller: http.NewResponseController(w)}
}

// send writes one event and flushes it. JSON escapes every line end, so the data is one line.
func (s *stream) send(event string, data any) error {
	encoded, err := wire.Marshal(data)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", event, encoded); err != nil {
		return err
	}
	return s.controller.Flush()
}
