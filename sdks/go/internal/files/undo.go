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

// Undo restores the previous files. If that fails, the work folder and its journal stay, because they
// may hold the only copies, and the next start tries again.
func (p *Placement) Undo() error {
	var failures []error
	// Placed files are removed first: they may be in the way of removed ones.
	for i, location := range p.placed {
		failures = append(failures, p.unplace(i, location))
	}
	// In reverse, so that a folder is restored before a file that was taken out of it earlier.
	for i, location := range slices.Backward(p.removed) {
		failures = append(failures, p.bringBack(i, location))
	}
	if err := errors.Join(failures...); err != nil {
		slog.Error("cannot undo a change; the original files are kept", "folder", p.work, "error", err)
		return errors.Join(err, p.journal.close())
	}
	return p.Keep()
}

// unplace touches only what this change has placed, because the document may have been written again
// since a failed undo. The previous file also stays in the work folder, for a repeated undo.
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

// bringBack does not overwrite what was written since, and does not restore a deleted brain.
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
	// Folders created for files that were never placed.
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
