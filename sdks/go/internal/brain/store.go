package brain

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"memoryd/internal/embed"
	"memoryd/internal/files"
	"memoryd/internal/problem"
)

var validID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// Store is all brains below a state folder.
type Store struct {
	home     Home
	embedder embed.Embedder

	mu     sync.Mutex
	brains map[string]*Brain
	gates  map[string]gate
}

// gate lets one caller at a time open, create or delete a brain. It is a channel, not a mutex:
// opening may wait for an embedder, and who waits behind that may go away.
type gate chan struct{}

// NewStore makes the state folder where it is missing. The embedder may be nil.
func NewStore(home Home, embedder embed.Embedder) (*Store, error) {
	absolute, err := filepath.Abs(string(home))
	if err != nil {
		return nil, err
	}
	store := &Store{home: Home(absolute), embedder: embedder, brains: map[string]*Brain{}, gates: map[string]gate{}}
	return store, store.home.prepare()
}

// Warm opens all brains. One that fails is tried again when it is asked for.
func (s *Store) Warm(ctx context.Context) {
	ids, err := s.IDs()
	if err != nil {
		slog.ErrorContext(ctx, "listing brains", "error", err)
	}
	for _, id := range ids {
		if _, err := s.Get(ctx, id); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "opening a brain", "brain", id, "error", err)
		}
	}
}

// Close closes all brains; nothing may use them any more.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var failures []error
	for _, b := range s.brains {
		failures = append(failures, b.close())
	}
	clear(s.brains)
	return errors.Join(failures...)
}

// IDs lists the brains in the order of their ids.
func (s *Store) IDs() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(string(s.home), "brains"))
	if err != nil {
		return nil, err
	}
	ids := []string{}
	for _, entry := range entries {
		if entry.IsDir() && checkID(entry.Name()) == nil {
			ids = append(ids, entry.Name())
		}
	}
	return ids, nil
}

// Get returns a brain whose index is what its files say.
func (s *Store) Get(ctx context.Context, id string) (*Brain, error) {
	if b := s.known(id); b != nil && b.upToDate.Load() {
		return b, nil
	}
	if err := s.Check(id); err != nil {
		return nil, err
	}
	var brain *Brain
	err := s.alone(ctx, id, func() (err error) {
		brain, err = s.opened(ctx, id)
		if err == nil && !brain.upToDate.Load() {
			err = brain.reconcile(ctx)
		}
		return err
	})
	return brain, err
}

// Create makes an empty brain; the description may be nil.
func (s *Store) Create(ctx context.Context, id string, description *string) (*Brain, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	if err := s.alone(ctx, id, func() error { return s.create(id, description) }); err != nil {
		return nil, err
	}
	return s.Get(ctx, id)
}

func (s *Store) create(id string, description *string) error {
	layout := s.home.layout(id)
	if err := os.Mkdir(layout.documents, 0o755); errors.Is(err, fs.ErrExist) {
		return problem.New(problem.Conflict, "brain %q exists", id)
	} else if err != nil {
		return err
	}
	// A folder that was removed by hand has left these.
	if err := errors.Join(os.RemoveAll(layout.sidecars), os.RemoveAll(layout.description)); err != nil {
		return err
	}
	if description == nil {
		return nil
	}
	return os.WriteFile(layout.description, []byte(*description), 0o644)
}

// Delete removes a brain and all that it holds. An embedder that is away is no hindrance.
func (s *Store) Delete(ctx context.Context, id string) error {
	if err := s.Check(id); err != nil {
		return err
	}
	return s.alone(ctx, id, func() error {
		b, err := s.opened(ctx, id)
		if err != nil {
			return err
		}
		err = b.delete()
		if s.Check(id) != nil {
			s.mu.Lock()
			delete(s.brains, id)
			s.mu.Unlock()
		}
		return err
	})
}

// alone runs act while nobody else opens, creates or deletes the brain.
func (s *Store) alone(ctx context.Context, id string, act func() error) error {
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

func (s *Store) known(id string) *Brain {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.brains[id]
}

// opened returns a brain, whose index may not be up to date.
func (s *Store) opened(ctx context.Context, id string) (*Brain, error) {
	if b := s.known(id); b != nil {
		return b, nil
	}
	if err := s.Check(id); err != nil {
		return nil, err
	}
	b, err := open(ctx, s.home, id, s.embedder)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.brains[id] = b
	return b, nil
}

// Check refuses an id that names no brain.
func (s *Store) Check(id string) error {
	if err := checkID(id); err != nil {
		return err
	}
	if !files.Exists(s.home.layout(id).documents) {
		return problem.New(problem.NotFound, "no brain %q", id)
	}
	return nil
}

func checkID(id string) error {
	if id == "." || id == ".." || !validID.MatchString(id) {
		return problem.Invalid("brainId: %q is not [A-Za-z0-9._-]{1,128}", id)
	}
	return nil
}
