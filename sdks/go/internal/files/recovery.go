package files

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
)

// recoverAll undoes and removes what daemons left in staging that no longer run, whichever SDK they
// were of, except in its own folder. A change that cannot be undone stays for the next start, and the
// log names its folder.
func recoverAll(home, staging, own string) error {
	entries, err := os.ReadDir(staging)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		folder := filepath.Join(staging, entry.Name())
		if !entry.IsDir() || folder == own {
			continue
		}
		if err := recoverDaemon(home, folder); err != nil {
			slog.Error("cannot undo the changes of a daemon; its files are kept", "folder", folder, "error", err)
		}
	}
	return nil
}

func recoverDaemon(home, folder string) (err error) {
	lock, err := lockDatabase(filepath.Join(folder, "lock"), 0)
	if lock == nil || err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if info, err := lstat(filepath.Join(folder, journalName)); info != nil || err != nil {
		return errors.Join(err, fmt.Errorf("%s: a change of another format is left as it is", folder))
	}
	changes, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var failures []error
	for _, entry := range changes {
		if change := filepath.Join(folder, entry.Name()); entry.IsDir() {
			failures = append(failures, recoverChange(home, change))
		}
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	return os.RemoveAll(folder)
}

func recoverChange(home, change string) error {
	if info, err := lstat(filepath.Join(change, journalName)); info == nil || err != nil {
		return err
	}
	steps, err := readJournal(change)
	if err == nil {
		err = undo(home, change, steps)
	}
	if err == nil {
		// The journal goes first, so that a folder that is half removed is never undone.
		err = endJournal(change)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", change, err)
	}
	return os.RemoveAll(change)
}
