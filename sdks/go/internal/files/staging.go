package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// startWait is how long to wait for another daemon that starts, or creates or deletes a brain.
const startWait = time.Minute

// Staging is this daemon's folder below $JB_HOME/staging, where it prepares changes and moves what it
// deletes. It is locked as long as the daemon runs.
type Staging struct {
	home, root, folder string
	lock               io.Closer
	starting           sync.Mutex
}

// OpenStaging undoes what killed daemons left, and takes a folder.
func OpenStaging(home string) (*Staging, error) {
	s := &Staging{home: home, root: filepath.Join(home, "staging")}
	return s, s.Exclusively(func() (err error) {
		if err := s.Recover(); err != nil {
			return err
		}
		if s.folder, err = os.MkdirTemp(s.root, "go-"); err != nil {
			return err
		}
		s.lock, err = lockDatabase(filepath.Join(s.folder, "lock"), 0)
		if err == nil && s.lock == nil {
			err = fmt.Errorf("%s is locked by another daemon", s.folder)
		}
		return err
	})
}

// Exclusively runs act as the only daemon that starts, or creates or deletes a brain.
func (s *Staging) Exclusively(act func() error) error {
	s.starting.Lock() // the other lock may be one of the whole process
	defer s.starting.Unlock()
	lock, err := lockDatabase(filepath.Join(s.root, "lock"), startWait)
	if err != nil {
		return fmt.Errorf("cannot lock the staging folder: %w", err)
	}
	if lock == nil {
		return fmt.Errorf("another daemon has locked %s for %s", s.root, startWait)
	}
	return errors.Join(act(), lock.Close())
}

// Recover undoes what daemons left that were killed since; call it within Exclusively.
func (s *Staging) Recover() error { return recoverAll(s.home, s.root, s.folder) }

// NewFolder creates a folder for one change, or for files to be deleted. It goes with the daemon.
func (s *Staging) NewFolder() (string, error) { return os.MkdirTemp(s.folder, "") }

// Close removes the folder, unless it holds a change that could not be undone.
func (s *Staging) Close() error {
	if s.lock == nil {
		return nil
	}
	// Not filepath.Glob: the path of the state folder may contain its special characters.
	journals, err := fs.Glob(os.DirFS(s.folder), "*/"+journalName)
	if err == nil && len(journals) == 0 {
		err = os.RemoveAll(s.folder)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	err = errors.Join(err, s.lock.Close())
	s.lock = nil
	return err
}
