package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"memoryd/internal/problem"
)

// undo undoes all steps, the last one first, even if some fail; the change's folder may then hold the
// only copy of files. It can be repeated, also after a kill. What was written later stays, and nothing
// of a brain that was deleted is brought back.
func undo(home, change string, steps []step) error {
	var failures []error
	for _, s := range slices.Backward(steps) {
		if !Exists(s.brain(home)) {
			continue
		}
		var err error
		if s.Put != "" {
			err = takeAway(home, s, filepath.Join(change, s.NewName), filepath.Join(change, s.OldName))
		} else {
			err = putBack(home, s, filepath.Join(change, s.OldName))
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", s.target(), err))
		}
	}
	return errors.Join(failures...)
}

// takeAway touches only the file that the step placed; any other was put there later.
func takeAway(home string, s step, placed, old string) error {
	target := filepath.Join(home, s.target())
	if reached, err := reachedByFolders(home, s.target()); err != nil || !reached {
		return err
	}
	current, err := lstat(target)
	if err != nil {
		return err
	}
	own, err := lstat(placed)
	if err != nil {
		return err
	}
	if current != nil && own != nil && os.SameFile(current, own) {
		err := os.Rename(old, target)
		if errors.Is(err, fs.ErrNotExist) {
			err = os.Remove(target)
			current = nil
		}
		if err != nil {
			return err
		}
	}
	if current == nil {
		removeEmptyAbove(home, s.target())
	}
	return nil
}

func putBack(home string, s step, old string) error {
	target := filepath.Join(home, s.target())
	if kept, err := lstat(old); err != nil || kept == nil {
		return err
	}
	// A parent that is a file by now was written later.
	if reached, err := reachedByFolders(home, s.target()); err != nil || !reached {
		return err
	}
	// Folders created for files that were never placed.
	if err := clearFolders(target); err != nil && problem.Of(err).Code != problem.Conflict {
		return err
	}
	if current, err := lstat(target); err != nil || current != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.Rename(old, target)
}

// reachedByFolders reports whether all that exists of the folders above a path are folders, not links
// or files.
func reachedByFolders(home, path string) (bool, error) {
	folder := home
	names := strings.Split(path, "/")
	for _, name := range names[:len(names)-1] {
		folder = filepath.Join(folder, name)
		info, err := lstat(folder)
		if err != nil {
			return false, err
		}
		if info == nil {
			return true, nil
		}
		if !info.IsDir() {
			return false, nil
		}
	}
	return true, nil
}

// removeEmptyAbove removes the folders above a path that are empty, but not the brain's own folder.
func removeEmptyAbove(home, path string) {
	names := strings.Split(path, "/")
	for names = names[:len(names)-1]; len(names) > 2; names = names[:len(names)-1] {
		// Not os.Remove, which would remove a file too.
		err := syscall.Rmdir(filepath.Join(home, strings.Join(names, "/")))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return // not empty
		}
	}
}

// clearFolders removes a tree of folders without files, which do not exist for the contract, from
// the path of a document. It fails with Conflict if there is a file in it.
func clearFolders(target string) error {
	if !Exists(target) {
		return nil
	}
	var folders []string
	err := filepath.WalkDir(target, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			return problem.New(problem.Conflict, "a folder with files that are not documents is in the way")
		}
		folders = append(folders, name)
		return err
	})
	for _, folder := range slices.Backward(folders) {
		if err == nil {
			err = syscall.Rmdir(folder)
		}
	}
	return err
}

// lstat returns nil if nothing is there.
func lstat(file string) (fs.FileInfo, error) {
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	return info, err
}
