package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"memoryd/internal/problem"
)

// Location is a canonical path below a root, which is never removed itself.
type Location struct{ Root, Path string }

func (l Location) file() string { return Join(l.Root, l.Path) }

// Content is a file to be.
type Content struct {
	Location
	Bytes []byte
}

// Placement is a change of files that was made, and can still be taken back.
type Placement struct {
	work string
	undo []func() error
}

// Place writes all contents and removes what else it is told, or does nothing. No file is ever seen
// half written. What is not there is removed already; folders that are left empty go too.
func Place(staging string, contents []Content, removed []Location) (*Placement, error) {
	work, err := os.MkdirTemp(staging, "change-")
	if err != nil {
		return nil, err
	}
	p := &Placement{work: work}
	if err := p.place(contents, removed); err != nil {
		return nil, errors.Join(err, p.Undo())
	}
	return p, nil
}

// place writes before it removes: a daemon that is killed between leaves a renamed document twice,
// not lost. Only where what goes is in the way of what comes (`a` is renamed to `a/b`) it goes first.
func (p *Placement) place(contents []Content, removed []Location) error {
	for i, content := range contents {
		if err := os.WriteFile(p.staged(i), content.Bytes, 0o644); err != nil {
			return err
		}
	}
	var blocked []int
	for i, content := range contents {
		switch err := p.move(i, content.file()); {
		case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
			blocked = append(blocked, i)
		case err != nil:
			return err
		}
	}
	for i, location := range removed {
		if err := p.remove(i, location); err != nil {
			return err
		}
	}
	for _, i := range blocked {
		target := contents[i].file()
		if err := p.clear(target); err != nil {
			return err
		}
		if err := p.move(i, target); err != nil {
			return err
		}
	}
	return nil
}

func (p *Placement) staged(i int) string { return filepath.Join(p.work, strconv.Itoa(i)) }

func (p *Placement) move(i int, target string) error {
	old := p.staged(i) + ".old"
	switch err := os.Link(target, old); {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		old = ""
	case Exists(target):
		return syscall.EISDIR // what link says of a folder differs between systems
	default:
		return err
	}
	err := os.Rename(p.staged(i), target)
	if errors.Is(err, fs.ErrNotExist) {
		if err := p.makeFolder(filepath.Dir(target)); err != nil {
			return err
		}
		err = os.Rename(p.staged(i), target)
	}
	if err != nil {
		return err
	}
	p.undo = append(p.undo, func() error {
		if old != "" {
			return os.Rename(old, target)
		}
		return os.Remove(target)
	})
	return nil
}

// makeFolder makes a folder that is missing, after those that it lies in.
func (p *Placement) makeFolder(folder string) error {
	if Exists(folder) {
		return nil
	}
	if err := p.makeFolder(filepath.Dir(folder)); err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	p.undo = append(p.undo, func() error { return os.Remove(folder) })
	return nil
}

// remove takes a file away, or a whole folder, and the folders that it leaves empty.
func (p *Placement) remove(i int, location Location) error {
	target, grave := location.file(), p.staged(i)+".removed"
	err := os.Rename(target, grave)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	p.undo = append(p.undo, func() error { return os.Rename(grave, target) })
	for folder := filepath.Dir(target); folder != location.Root; folder = filepath.Dir(folder) {
		if p.removeEmpty(folder) != nil {
			break // something else lies in it
		}
	}
	return nil
}

func (p *Placement) removeEmpty(folder string) error {
	// Not os.Remove, which would take a file too.
	if err := syscall.Rmdir(folder); err != nil {
		return err
	}
	p.undo = append(p.undo, func() error { return os.Mkdir(folder, 0o755) })
	return nil
}

// clear removes folders without any file, which are none to the contract, from a document's place.
func (p *Placement) clear(target string) error {
	if !Exists(target) {
		return nil
	}
	var folders []string
	err := filepath.WalkDir(target, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			return problem.New(problem.Conflict, "a folder with what is no document lies in the way")
		}
		folders = append(folders, name)
		return err
	})
	for _, folder := range slices.Backward(folders) {
		if err == nil {
			err = p.removeEmpty(folder)
		}
	}
	return err
}

// Keep ends the placement with the files as they are now.
func (p *Placement) Keep() error { return os.RemoveAll(p.work) }

// Undo brings back what was there before.
func (p *Placement) Undo() error {
	var failures []error
	for _, step := range slices.Backward(p.undo) {
		failures = append(failures, step())
	}
	return errors.Join(append(failures, os.RemoveAll(p.work))...)
}
