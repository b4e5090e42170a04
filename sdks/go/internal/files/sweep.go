package files

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// staleAfter spares the work of a second daemon on the same state.
const staleAfter = time.Hour

// ownWork begins the names of our folders in staging. Daemons of other languages have theirs there
// too, with journals that only they can read.
const ownWork = "go-"

// NewWork makes a folder in staging that Sweep removes when it is left there.
func NewWork(staging, kind string) (string, error) { return os.MkdirTemp(staging, ownWork+kind+"-") }

// Sweep undoes the changes that a daemon was killed in, and removes what else it has left in
// staging. What cannot be undone stays for the next time.
func Sweep(staging string) error {
	left, err := os.ReadDir(staging)
	if err != nil {
		return err
	}
	for _, entry := range left {
		if !strings.HasPrefix(entry.Name(), ownWork) {
			continue
		}
		folder := filepath.Join(staging, entry.Name())
		if _, err := os.Lstat(filepath.Join(folder, journalName)); err == nil {
			if err := recoverWork(staging, folder); err != nil {
				slog.Error("undoing a change that was broken off", "folder", folder, "error", err)
			}
			continue
		}
		info, err := entry.Info()
		if err != nil || time.Since(info.ModTime()) < staleAfter {
			continue // gone meanwhile, or somebody's work
		}
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	return nil
}

// recoverWork undoes a change whose owner has died.
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
