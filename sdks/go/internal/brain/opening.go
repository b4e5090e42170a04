package brain

import "context"

// opening is a reconciliation that requests wait for. It outlives the request that began it: a brain
// that takes longer to open than its clients wait would otherwise never open.
type opening struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when brain and err are set
	brain  *Brain
	err    error
}

// gate admits one caller at a time to open, create or delete a brain. It is a channel, not a mutex,
// because opening may wait for an embedder, and callers that queue for it may be cancelled.
type gate chan struct{}

// opening returns the current opening of a brain, or begins one.
func (s *Store) opening(id string) (*opening, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.openings[id]; o != nil {
		return o, nil
	}
	if err := s.closing.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(s.closing)
	o := &opening{cancel: cancel, done: make(chan struct{})}
	s.openings[id] = o
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		defer cancel()
		o.err = s.exclusively(ctx, id, func() (err error) {
			o.brain, err = s.open(ctx, id)
			if err == nil && !o.brain.upToDate.Load() {
				err = o.brain.reconcile(ctx)
			}
			return err
		})
		s.end(id, o)
	}()
	return o, nil
}

// end lets those go on who wait for the opening.
func (s *Store) end(id string, o *opening) {
	s.mu.Lock()
	if s.openings[id] == o {
		delete(s.openings, id)
	}
	s.mu.Unlock()
	close(o.done)
}

// exclusively runs act while no other caller opens, creates or deletes the brain.
func (s *Store) exclusively(ctx context.Context, id string, act func() error) error {
	s.mu.Lock()
	g, ok := s.gates[id]
	if !ok {
		g = make(gate, 1)
		s.gates[id] = g
	}
	s.mu.Unlock()
	select {
	case g <- struct{}{}:
		defer func() { <-g }()
		return act()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// open returns a brain whose index may be out of date.
func (s *Store) open(ctx context.Context, id string) (*Brain, error) {
	if b := s.cached(id); b != nil {
		return b, nil
	}
	if err := s.Check(id); err != nil {
		return nil, err
	}
	b, err := open(s.home, id, s.embedder, s.staging)
	if err != nil {
		return nil, err
	}
	b.refresh = func(ctx context.Context) error {
		_, err := s.Get(ctx, id)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.brains[id] = b
	return b, nil
}
