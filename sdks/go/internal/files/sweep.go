package files

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// staleAfter protects the work of a second daemon on the same state folder.
const staleAfter = time.Hour

// ownWork is the prefix of this daemon's folders in staging. Daemons in other languages have theirs
// there too, with journals that only they can read.
const ownWork = "go-"

// NewWork creates a folder in staging, which Sweep removes if it is left behind.
func NewWork(staging, kind string) (string, error) { return os.MkdirTemp(staging, ownWork+kind+"-") }

// Sweep undoes the changes of a daemon that was killed, and removes whatever else it left in staging.
// A change that cannot be undone stays for the next attempt.
func Sweep(staging string) error {
	entries, err := os.ReadDir(staging)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ownWork) {
			continue
		}
		folder := filepath.Join(staging, entry.Name())
		if _, err := os.Lstat(filepath.Join(folder, journalName)); err == nil {
			if err := recoverWork(staging, folder); err != nil {
				slog.Error("cannot undo an interrupted change", "folder", folder, "error", err)
			}
			continue
		}
		info, err := entry.Info()
		if err != nil || time.Since(info.ModTime()) < staleAfter {
			continue // removed meanwhile, or in use
		}
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	return nil
}

// recoverWork undoes a change whose process has died.
func recoverWork(staging, folder string) error {
	j, err := openJournal(folder)
	if j == nil || err != nil {
		return err
	}
	p := &Placement{work: folder, journal: j}
	if p.placed, p.removed, err = j.read(staging); err != nil {
		return errors.Join(err, j.close())
	}
	return p.Undo()
}
