package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// staleAfter spares the work of a second daemon on the same state.
const staleAfter = time.Hour

// Content is a file to be.
type Content struct {
	Target string
	Bytes  []byte
}

// Placement is files that were put in their places, and can still be taken back.
type Placement struct {
	work string
	done []replaced
	made []string // folders, outer ones first
}

type replaced struct{ target, old string }

// Place writes all contents, or none. No file is ever seen half written.
func Place(staging string, contents []Content) (*Placement, error) {
	work, err := os.MkdirTemp(staging, "ingest-")
	if err != nil {
		return nil, err
	}
	p := &Placement{work: work}
	for i, content := range contents {
		if err := os.WriteFile(p.staged(i), content.Bytes, 0o644); err != nil {
			return nil, errors.Join(err, p.Undo())
		}
	}
	for i, content := range contents {
		if err := p.move(i, content.Target); err != nil {
			return nil, errors.Join(err, p.Undo())
		}
	}
	return p, nil
}

func (p *Placement) staged(i int) string { return filepath.Join(p.work, strconv.Itoa(i)) }

func (p *Placement) move(i int, target string) error {
	old := p.staged(i) + ".old"
	if err := os.Link(target, old); errors.Is(err, fs.ErrNotExist) {
		old = ""
	} else if err != nil {
		return err
	}
	p.done = append(p.done, replaced{target, old})
	err := os.Rename(p.staged(i), target)
	if errors.Is(err, fs.ErrNotExist) {
		if err := p.makeFolder(filepath.Dir(target)); err != nil {
			return err
		}
		err = os.Rename(p.staged(i), target)
	}
	return err
}

// makeFolder makes a folder that is missing, after those that it lies in.
func (p *Placement) makeFolder(folder string) error {
	if Exists(folder) {
		return nil
	}
	if err := p.makeFolder(filepath.Dir(folder)); err != nil {
		return err
	}
	p.made = append(p.made, folder)
	return os.Mkdir(folder, 0o755)
}

// Keep ends the placement with the files in their places.
func (p *Placement) Keep() error { return os.RemoveAll(p.work) }

// Undo brings back what was there before.
func (p *Placement) Undo() error {
	var failures []error
	for _, file := range slices.Backward(p.done) {
		if file.old != "" {
			failures = append(failures, os.Rename(file.old, file.target))
		} else if err := os.Remove(file.target); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failures = append(failures, err)
		}
	}
	// A folder that stayed would be a conflict for a document of its name.
	for _, folder := range slices.Backward(p.made) {
		failures = append(failures, os.Remove(folder))
	}
	return errors.Join(append(failures, os.RemoveAll(p.work))...)
}

// Sweep removes what a daemon that was killed has left in staging.
func Sweep(staging string) error {
	left, err := os.ReadDir(staging)
	if err != nil {
		return err
	}
	for _, entry := range left {
		info, err := entry.Info()
		if err != nil || time.Since(info.ModTime()) < staleAfter {
			continue // gone meanwhile, or somebody's work
		}
		if err := os.RemoveAll(filepath.Join(staging, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
