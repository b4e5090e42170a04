package brain

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"memoryd/internal/embed"
	"memoryd/internal/files"
	"memoryd/internal/index"
	"memoryd/internal/problem"
)

var validID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// olderIndex matches the names of SQLite databases, which the indexes were before they were logs, and of
// what belongs to them.
var olderIndex = regexp.MustCompile(`\.sqlite(-wal|-shm|-journal)?$`)

// Store manages all brains below a state folder.
type Store struct {
	home     Home
	embedder embed.Embedder
	staging  *files.Staging

	mu       sync.Mutex
	brains   map[string]*Brain
	gates    map[string]gate
	openings map[string]*opening

	running sync.WaitGroup  // openings
	closing context.Context // ended by Close
	close   context.CancelFunc
}

// NewStore returns a store and creates the state folder if necessary. The embedder may be nil.
func NewStore(home Home, embedder embed.Embedder) (*Store, error) {
	absolute, err := filepath.Abs(string(home))
	if err != nil {
		return nil, err
	}
	store := &Store{
		home: Home(absolute), embedder: embedder, brains: map[string]*Brain{}, gates: map[string]gate{},
		openings: map[string]*opening{},
	}
	store.closing, store.close = context.WithCancel(context.Background())
	for _, folder := range []string{"brains", "meta", "descriptions", "staging", "index/go"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(absolute, folder), 0o755))
	}
	if err != nil {
		return nil, err
	}
	// Before any brain is opened, because opening reconciles the index with the files.
	if store.staging, err = files.OpenStaging(absolute); err != nil {
		return nil, err
	}
	store.removeOrphans()
	return store, nil
}

// removeOrphans removes the indexes of brains whose folder was removed by hand while no daemon ran, and
// all of an older format: they hold the text of the documents.
func (s *Store) removeOrphans() {
	folder := filepath.Dir(s.home.layout("").index)
	entries, err := os.ReadDir(folder)
	for _, entry := range entries {
		if olderIndex.MatchString(entry.Name()) {
			err = errors.Join(err, index.Remove(filepath.Join(folder, entry.Name())))
		}
		end := strings.LastIndex(entry.Name(), indexSuffix)
		if end < 0 || checkID(entry.Name()[:end]) != nil {
			continue
		}
		if layout := s.home.layout(entry.Name()[:end]); !files.Exists(layout.documents) {
			err = errors.Join(err, removeOrphan(layout))
		}
	}
	if err != nil {
		slog.Warn("cannot remove an unused index", "error", err)
	}
}

// removeOrphan leaves an index that another daemon holds.
func removeOrphan(layout layout) error {
	owner, err := files.LockFile(layout.lock)
	if err != nil || owner == nil {
		return err
	}
	return errors.Join(index.Remove(layout.index), owner.Close())
}

// OpenAll opens all brains. One that fails is retried when it is next requested.
func (s *Store) OpenAll(ctx context.Context) {
	ids, err := s.IDs()
	if err != nil {
		slog.ErrorContext(ctx, "cannot list the brains", "error", err)
	}
	for _, id := range ids {
		if _, err := s.Get(ctx, id); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "cannot open a brain", "brain", id, "error", err)
		}
	}
}

// Close ends the openings and closes all brains; they must no longer be in use.
func (s *Store) Close() error {
	s.mu.Lock()
	s.close() // locked: no opening may begin once none is waited for
	s.mu.Unlock()
	s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var failures []error
	for _, b := range s.brains {
		failures = append(failures, b.close())
	}
	clear(s.brains)
	return errors.Join(append(failures, s.staging.Close())...)
}

// IDs lists the ids of all brains, sorted.
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

// Get returns a brain whose index matches its files.
func (s *Store) Get(ctx context.Context, id string) (*Brain, error) {
	for {
		if b := s.cached(id); b != nil && b.upToDate.Load() && files.Exists(b.layout.documents) {
			return b, nil
		}
		if err := s.Check(id); err != nil {
			return nil, errors.Join(err, s.discard(id))
		}
		o, err := s.opening(id)
		if err != nil {
			return nil, err
		}
		select {
		case <-o.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		// If the brain is being deleted, that ended the opening: look again.
		if !errors.Is(o.err, context.Canceled) {
			return o.brain, o.err
		}
	}
}

// Create creates an empty brain; the description may be nil.
func (s *Store) Create(ctx context.Context, id string, description *string) (*Brain, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	err := s.exclusively(ctx, id, func() error {
		return s.staging.Exclusively(func() error { return s.create(id, description) })
	})
	if err != nil {
		return nil, err
	}
	return s.Get(ctx, id)
}

func (s *Store) create(id string, description *string) error {
	layout := s.home.layout(id)
	if _, err := os.Lstat(layout.documents); err == nil {
		return problem.New(problem.Conflict, "brain %q already exists", id)
	}
	// An undo must find that the brain of this id is gone.
	if err := errors.Join(s.discard(id), s.staging.Recover()); err != nil {
		return err
	}
	work, err := s.staging.NewFolder()
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	// These remain if somebody removed the brain's folder by hand, or its daemon was killed meanwhile.
	for _, left := range []string{layout.sidecars, layout.description} {
		err := os.Rename(left, filepath.Join(work, filepath.Base(filepath.Dir(left))))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if description != nil {
		file := filepath.Join(work, "description")
		if err := os.WriteFile(file, []byte(*description), 0o644); err != nil {
			return err
		}
		if err := os.Rename(file, layout.description); err != nil {
			return err
		}
	}
	// Last, so that the brain is created as a whole.
	return os.Mkdir(layout.documents, 0o755)
}

// discard forgets a brain whose folder was removed by hand.
func (s *Store) discard(id string) error {
	s.mu.Lock()
	b := s.brains[id]
	delete(s.brains, id)
	s.mu.Unlock()
	if b == nil {
		return nil
	}
	return b.discard()
}

// Delete removes a brain and everything in it. It does not need the embedder.
func (s *Store) Delete(ctx context.Context, id string) error {
	if err := s.Check(id); err != nil {
		return err
	}
	// Nobody begins another opening before the deletion has ended.
	deletion := &opening{cancel: func() {}, done: make(chan struct{}), err: context.Canceled}
	defer s.end(id, deletion)
	s.mu.Lock()
	if o := s.openings[id]; o != nil {
		o.cancel()
	}
	s.openings[id] = deletion
	s.mu.Unlock()
	return s.exclusively(ctx, id, func() error {
		b, err := s.open(ctx, id)
		if err != nil {
			return err
		}
		err = s.staging.Exclusively(b.delete)
		if s.Check(id) != nil {
			s.mu.Lock()
			delete(s.brains, id)
			s.mu.Unlock()
		}
		return err
	})
}

func (s *Store) cached(id string) *Brain {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.brains[id]
}

// Check returns an error if the id is invalid or no brain has it.
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
		return problem.Invalid("brainId: %q does not match [A-Za-z0-9._-]{1,128}", id)
	}
	return nil
}
