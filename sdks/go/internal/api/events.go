package api

import (
	"net/http"
	"time"

	"memoryd/internal/feed"
	"memoryd/internal/wire"
)

func (a *API) events(w http.ResponseWriter, r *http.Request) error {
	b, err := a.brain(r)
	if err != nil {
		return err
	}
	subscription, err := b.Subscribe()
	if err != nil {
		return err
	}
	defer subscription.Cancel()
	s := newStream(w)
	defer s.end()
	a.forward(r, s, subscription.Changes)
	return nil
}

// forward writes the stream until one side ends it.
func (a *API) forward(r *http.Request, s *stream, changes <-chan feed.Change) {
	err := s.write("event: ready\ndata: ok\n\n")
	silence := time.NewTimer(a.PingAfter)
	defer silence.Stop()
	for err == nil {
		select {
		case <-r.Context().Done():
			return
		case <-a.Stopping:
			return
		case change, open := <-changes:
			if !open {
				return
			}
			err = s.sendChange(change)
		case <-silence.C:
			err = s.write("event: ping\ndata: ok\n\n")
		}
		silence.Reset(a.PingAfter)
	}
}

func (s *stream) sendChange(change feed.Change) error {
	encoded, err := wire.Marshal(change)
	if err != nil {
		return err
	}
	return s.write("event: change\nid: %d\ndata: %s\n\n", change.ID, encoded)
}
