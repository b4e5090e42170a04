package api

import (
	"net/http"
	"time"

	"memoryd/internal/brain"
	"memoryd/internal/feed"
	"memoryd/internal/wire"
)

// events writes the stream until one side ends it.
func (a *API) events(w http.ResponseWriter, r *http.Request, b *brain.Brain) error {
	subscription, err := b.Subscribe()
	if err != nil {
		return err
	}
	defer subscription.Cancel()
	s := newStream(w)
	defer s.end()
	// A failed write means that the client has disconnected.
	for err = s.write("event: ready\ndata: ok\n\n"); err == nil; {
		select {
		case <-r.Context().Done():
			return nil
		case <-a.Stopping:
			return nil
		case change, open := <-subscription.Changes:
			if !open {
				return nil
			}
			err = s.sendChange(change)
		case <-time.After(a.PingAfter):
			err = s.write("event: ping\ndata: ok\n\n")
		}
	}
	return nil
}

func (s *stream) sendChange(change feed.Change) error {
	encoded, err := wire.Marshal(change)
	if err != nil {
		return err
	}
	return s.write("event: change\nid: %d\ndata: %s\n\n", change.ID, encoded)
}
