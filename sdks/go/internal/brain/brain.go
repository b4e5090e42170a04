// Package brain implements brains: isolated corpora, each a folder of documents with its index.
package brain

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"memoryd/internal/embed"
	"memoryd/internal/feed"
	"memoryd/internal/files"
	"memoryd/internal/index"
	"memoryd/internal/problem"
)

// Brain is one corpus. It is safe for concurrent use: many goroutines read its index, one writes.
type Brain struct {
	ID       string
	embedder embed.Embedder // may be nil
	layout   layout
	staging  *files.Staging
	feed     *feed.Feed

	mu      sync.RWMutex
	index   *index.Index
	owner   *os.File // holds the lock on the index file; nil if another daemon holds it
	deleted bool

	// upToDate reports whether the index has been reconciled with the files.
	upToDate atomic.Bool

	// refresh waits until it has.
	refresh func(context.Context) error
}

// open opens the index without reading the documents; reconcile does that.
func open(home Home, id string, embedder embed.Embedder, staging *files.Staging) (*Brain, error) {
	b := &Brain{ID: id, embedder: embedder, layout: home.layout(id), staging: staging, feed: feed.New()}
	owner, err := files.LockFile(b.layout.lock)
	if err != nil {
		return nil, err
	}
	// If another daemon of this kind holds the index, this one builds its own in memory.
	file := ""
	if owner != nil {
		file = b.layout.index
	}
	if b.index, err = index.Open(file, b.embedderName()); err != nil {
		if owner != nil {
			err = errors.Join(err, owner.Close())
		}
		return nil, err
	}
	b.owner = owner
	return b, nil
}

// Description returns the brain's description, nil if it has none.
func (b *Brain) Description() (*string, error) {
	text, err := files.ReadRegular(b.layout.description)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	description := string(text)
	return &description, nil
}

// Read calls read with the index, which is not written meanwhile. It fails with NotFound if the
// brain has been deleted.
func (b *Brain) Read(read func(*index.Index) error) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.deleted {
		return b.notFound()
	}
	return read(b.index)
}

// errStale means that the index must be reconciled with the files before it is read.
var errStale = errors.New("the index is being rebuilt")

// Search is Read for what needs the whole index; it waits for the index to be complete.
func (b *Brain) Search(ctx context.Context, read func(*index.Index) error) error {
	for {
		err := b.Read(func(ix *index.Index) error {
			if !b.upToDate.Load() {
				return errStale
			}
			return read(ix)
		})
		if !errors.Is(err, errStale) {
			return err
		}
		if err := b.refresh(ctx); err != nil {
			return err
		}
	}
}

func (b *Brain) embedderName() string {
	if b.embedder == nil {
		return "none"
	}
	return b.embedder.Name()
}

// Counts returns how many documents, chunks and vectors are searchable.
func (b *Brain) Counts(ctx context.Context) (counts index.Counts, err error) {
	err = b.Search(ctx, func(ix *index.Index) error {
		counts = ix.Counts()
		return nil
	})
	return counts, err
}

// Subscribe returns a subscription to all changes committed from now on.
func (b *Brain) Subscribe() (*feed.Subscription, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.deleted {
		return nil, b.notFound()
	}
	return b.feed.Subscribe(), nil
}

// write is Read with exclusive access.
func (b *Brain) write(write func(*index.Index) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted {
		return b.notFound()
	}
	return write(b.index)
}

func (b *Brain) notFound() error { return problem.New(problem.NotFound, "no brain %q", b.ID) }

func (b *Brain) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted {
		return nil
	}
	return b.release()
}

func (b *Brain) release() error {
	err := b.index.Close()
	if b.owner != nil {
		err = errors.Join(err, b.owner.Close())
	}
	return err
}

// delete removes everything that belongs to the brain. It renames the folder first, so that the
// brain is deleted at once, however long the removal takes.
func (b *Brain) delete() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted {
		return b.notFound()
	}
	grave, err := b.staging.NewFolder()
	if err != nil {
		return err
	}
	if err := os.Rename(b.layout.documents, filepath.Join(grave, "documents")); err != nil {
		return errors.Join(err, os.Remove(grave))
	}
	failures := []error{b.removeIndex()}
	for _, left := range []string{b.layout.sidecars, b.layout.description} {
		err := os.Rename(left, filepath.Join(grave, filepath.Base(filepath.Dir(left))))
		if !errors.Is(err, fs.ErrNotExist) {
			failures = append(failures, err)
		}
	}
	if err := errors.Join(append(failures, os.RemoveAll(grave))...); err != nil {
		// The brain is gone; creating it again removes what is left.
		slog.Warn("cannot remove all of a brain", "brain", b.ID, "error", err)
	}
	return nil
}

// discard closes a brain whose folder was removed by hand, and removes its index.
func (b *Brain) discard() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted {
		return nil
	}
	return b.removeIndex()
}

func (b *Brain) removeIndex() error {
	b.deleted = true
	b.feed.Close()
	var err error
	if b.owner != nil {
		err = index.Remove(b.layout.index)
	}
	return errors.Join(err, b.release())
}
