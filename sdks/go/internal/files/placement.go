package files

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"memoryd/internal/problem"
)

// Location is a canonical path below a root; the root itself is never removed.
type Location struct{ Root, Path string }

func (l Location) file() string { return Join(l.Root, l.Path) }

// Content is a file to write.
type Content struct {
	Location
	Bytes []byte
}

// Placement is a change of files that has been made and can still be undone. For the n-th content,
// its work folder holds `n`, `n.new`, which is moved into place, and `n.old`, the file that was there
// before; for the n-th removed location it holds `n.removed`.
type Placement struct {
	work            string
	placed, removed []Location
	journal         *journal
}

// Place writes all contents and removes all locations, or does nothing. Readers never see a partly
// written file. Missing locations are ignored, and folders that become empty are removed.
func Place(staging string, contents []Content, removed []Location) (*Placement, error) {
	work, err := NewWork(staging, "change")
	if err != nil {
		return nil, err
	}
	p := &Placement{work: work, removed: removed}
	if err := p.stage(staging, contents); err != nil {
		return nil, errors.Join(err, os.RemoveAll(work))
	}
	if err := p.place(); err != nil {
		return nil, errors.Join(err, p.Undo())
	}
	return p, nil
}

// stage writes the journal last: before that, no document has been touched.
func (p *Placement) stage(staging string, contents []Content) (err error) {
	for i, content := range contents {
		p.placed = append(p.placed, content.Location)
		if err := os.WriteFile(p.staged(i), content.Bytes, 0o644); err != nil {
			return err
		}
		if err := os.Link(p.staged(i), p.staged(i)+".new"); err != nil {
			return err
		}
	}
	p.journal, err = writeJournal(staging, p.work, p.placed, p.removed)
	return err
}

// place writes before it removes, so that a renamed document can be read at any time. It removes
// first only what is in the way of a new file (`a` is renamed to `a/b`).
func (p *Placement) place() error {
	var blocked []int
	for i, location := range p.placed {
		switch err := p.move(i, location.file()); {
		case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
			blocked = append(blocked, i)
		case err != nil:
			return err
		}
	}
	for i, location := range p.removed {
		if err := p.remove(i, location); err != nil {
			return err
		}
	}
	for _, i := range blocked {
		target := p.placed[i].file()
		if err := clearFolders(target); err != nil {
			return err
		}
		if err := p.move(i, target); err != nil {
			return err
		}
	}
	return nil
}

func (p *Placement) staged(i int) string { return filepath.Join(p.work, strconv.Itoa(i)) }

func (p *Placement) old(i int) string { return p.staged(i) + ".old" }

func (p *Placement) grave(i int) string { return p.staged(i) + ".removed" }

func (p *Placement) move(i int, target string) error {
	switch err := os.Link(target, p.old(i)); {
	case err == nil, errors.Is(err, fs.ErrNotExist):
	case Exists(target):
		return syscall.EISDIR // the error of link for a folder differs between systems
	default:
		return err
	}
	err := os.Rename(p.staged(i)+".new", target)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		err = os.Rename(p.staged(i)+".new", target)
	}
	return err
}

// remove moves away a file or a whole folder, and removes parent folders that become empty.
func (p *Placement) remove(i int, location Location) error {
	err := os.Rename(location.file(), p.grave(i))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err == nil {
		location.removeEmptyAbove()
	}
	return err
}

func (l Location) removeEmptyAbove() {
	for folder := filepath.Dir(l.file()); folder != l.Root; folder = filepath.Dir(folder) {
		// Not os.Remove, which would remove a file too.
		if syscall.Rmdir(folder) != nil {
			return // not empty
		}
	}
}

// clearFolders removes a tree of folders without files, which do not exist for the contract, from
// the path of a document.
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

// Keep commits the placement; if it fails, Undo is still possible.
func (p *Placement) Keep() error {
	if err := p.journal.end(p.work); err != nil {
		return err
	}
	if err := errors.Join(p.journal.close(), os.RemoveAll(p.work)); err != nil {
		slog.Warn("cannot clear the staging folder", "error", err)
	}
	return nil
}
