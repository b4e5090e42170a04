// Package feed publishes the changes committed to a brain to its subscribers.
package feed

import (
	"sync"
	"time"
)

// queueLimit is how many changes a subscriber may have left to receive when another commit comes.
const queueLimit = 1024

// commitLimit is how many changes one commit makes at most. They are queued together, so that a large
// commit alone ends no subscription.
const commitLimit = 1024

// Kind is what happened to a document.
type Kind string

const (
	Created Kind = "created"
	Updated Kind = "updated"
	Deleted Kind = "deleted"
	Renamed Kind = "renamed"
)

// Change is one committed mutation in the contract's form.
type Change struct {
	ID      int64     `json:"-"`
	Kind    Kind      `json:"kind"`
	Path    string    `json:"path"`
	OldPath string    `json:"old_path,omitzero"`
	Reason  *string   `json:"reason,omitzero"`
	When    time.Time `json:"when"`
}

// Feed passes changes to its subscribers without waiting for them.
type Feed struct {
	mu          sync.Mutex
	last        int64
	subscribers map[*Subscription]struct{}
}

// New returns a feed. Its numbers start at the current microsecond, so that they keep rising across
// restarts.
func New() *Feed {
	return &Feed{last: time.Now().UnixMicro(), subscribers: map[*Subscription]struct{}{}}
}

// Subscription is one subscriber's end of a feed.
type Subscription struct {
	// Changes is closed with the feed, or if its subscriber falls behind: after what was queued, so
	// that no change is missing before the end.
	Changes <-chan Change

	feed  *Feed
	queue chan Change
}

// Subscribe returns a subscription to everything published from now on, until it is cancelled.
func (f *Feed) Subscribe() *Subscription {
	queue := make(chan Change, queueLimit+commitLimit)
	s := &Subscription{Changes: queue, feed: f, queue: queue}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subscribers[s] = struct{}{}
	return s
}

// Publish assigns numbers and the time to changes, in order, and queues them.
func (f *Feed) Publish(changes []Change) {
	now := time.Now().UTC()
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.subscribers {
		if len(s.queue) >= queueLimit {
			f.end(s)
		}
	}
	for _, change := range changes {
		f.last++
		change.ID, change.When = f.last, now
		for s := range f.subscribers {
			select {
			case s.queue <- change:
			default:
				f.end(s)
			}
		}
	}
}

// Close ends all subscriptions after the changes that they have not yet received; nobody may subscribe
// afterwards.
func (f *Feed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.subscribers {
		f.end(s)
	}
}

// Cancel ends the subscription.
func (s *Subscription) Cancel() {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	if _, open := s.feed.subscribers[s]; open {
		s.feed.end(s)
	}
}

func (f *Feed) end(s *Subscription) {
	delete(f.subscribers, s)
	close(s.queue)
}
