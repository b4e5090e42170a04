// Package brain holds brains: isolated corpora, each a folder of documents with an index beside it.
package brain

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"memoryd/internal/embed"
	"memoryd/internal/feed"
	"memoryd/internal/files"
	"memoryd/internal/index"
	"memoryd/internal/problem"
)

// Brain is safe for concurrent use: many read its index at once, one writes.
type Brain struct {
	ID       string
	embedder embed.Embedder // nil without one
	layout   layout
	feed     *feed.Feed

	mu      sync.RWMutex
	index   *index.Index
	owner   *os.File // holds the lock on the index file; nil where another daemon does
	deleted bool

	// upToDate is whether the index was brought to what the files say.
	upToDate atomic.Bool
}

// open does not read the documents yet; reconcile does.
func open(ctx context.Context, home Home, id string, embedder embed.Embedder) (*Brain, error) {
	b := &Brain{ID: id, embedder: embedder, layout: home.layout(id), feed: feed.New()}
	owner, err := lock(b.layout.lock)
	if err != nil {
		return nil, err
	}
	// Where another daemon of this kind holds the index, one of our own is built in memory.
	file := ""
	if owner != nil {
		file = b.layout.index
	}
	name := "none"
	if embedder != nil {
		name = embedder.Name()
	}
	if b.index, err = index.Open(ctx, file, name); err != nil {
		if owner != nil {
			err = errors.Join(err, owner.Close())
		}
		return nil, err
	}
	b.owner = owner
	return b, nil
}

// Description is nil where none was given.
func (b *Brain) Description() (*string, error) {
	text, err := os.ReadFile(b.layout.description)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	description := string(text)
	return &description, nil
}

// Read lets read look at the index; no write happens meanwhile.
func (b *Brain) Read(read func(*index.Index) error) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.deleted {
		return b.gone()
	}
	return read(b.index)
}

// Counts counts what can be found.
func (b *Brain) Counts() (counts index.Counts, err error) {
	err = b.Read(func(ix *index.Index) error {
		counts = ix.Counts()
		return nil
	})
	return counts, err
}

// Subscribe tells of every change that is committed from now on.
func (b *Brain) Subscribe() (*feed.Subscription, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.deleted {
		return nil, b.gone()
	}
	return b.feed.Subscribe(), nil
}

// write is Read for one that is alone.
func (b *Brain) write(write func(*index.Index) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted {
		return b.gone()
	}
	return write(b.index)
}

func (b *Brain) gone() error { return problem.New(problem.NotFound, "no brain %q", b.ID) }

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

// delete removes all that there is of the brain. Its folder is renamed first: from then on the
// brain is gone, however long removing takes.
func (b *Brain) delete() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted {
		return b.gone()
	}
	grave, err := files.NewWork(b.layout.staging, "deleted")
	if err != nil {
		return err
	}
	if err := os.Rename(b.layout.documents, files.Join(grave, "documents")); err != nil {
		return errors.Join(err, os.Remove(grave))
	}
	b.deleted = true
	b.feed.Close()
	failures := []error{}
	if b.owner != nil {
		failures = append(failures, index.Remove(b.layout.index))
	}
	failures = append(failures, b.release(), os.RemoveAll(b.layout.sidecars), os.RemoveAll(grave))
	if err := os.Remove(b.layout.description); err != nil && !errors.Is(err, fs.ErrNotExist) {
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}
