package files

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Undo brings back the files that were there before. Where that fails, the work folder stays with
// its journal, as it may have the only copies, and the next start tries again.
func (p *Placement) Undo() error {
	var failures []error
	// What was placed goes first: it may be in the way of what was removed.
	for i, location := range p.placed {
		failures = append(failures, p.unplace(i, location))
	}
	// Backwards, so that a folder comes before a file that was taken out of it earlier.
	for i, location := range slices.Backward(p.removed) {
		failures = append(failures, p.bringBack(i, location))
	}
	if err := errors.Join(failures...); err != nil {
		slog.Error("a change is not undone, what it put aside stays", "folder", p.work, "error", err)
		return errors.Join(err, p.journal.close())
	}
	return p.Keep()
}

// unplace touches nothing but what this change has placed: the document may have been written anew
// since an undo that failed. What lay there before is kept beside too, to be found by an undo that
// is repeated.
func (p *Placement) unplace(i int, location Location) error {
	target := location.file()
	if placed, err := sameFile(p.staged(i), target); err != nil || !placed {
		return err
	}
	back := p.staged(i) + ".back"
	err := os.Link(p.old(i), back)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.Remove(target); err != nil {
			return err
		}
		location.removeEmptyAbove()
		return nil
	case err != nil && !errors.Is(err, fs.ErrExist):
		return err
	}
	return os.Rename(back, target)
}

// bringBack leaves alone what was written to the place since, or a brain that was deleted.
func (p *Placement) bringBack(i int, location Location) error {
	if _, err := os.Lstat(p.grave(i)); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if _, err := os.Lstat(location.Root); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	target := location.file()
	info, err := os.Lstat(target)
	if err == nil && info.Mode().IsRegular() {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Made for what did not get there any more.
	if err := clearFolders(target); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.Rename(p.grave(i), target)
}

func sameFile(a, b string) (bool, error) {
	first, err := os.Lstat(a)
	if err != nil {
		return false, err
	}
	second, err := os.Lstat(b)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	return err == nil && os.SameFile(first, second), err
}
