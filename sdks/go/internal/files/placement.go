package files

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"memoryd/internal/problem"
)

// Location is a canonical path below a root; the root itself is never created or removed.
type Location struct{ Root, Path string }

func (l Location) file() string { return filepath.Join(l.Root, l.Path) }

// Content is a file to write.
type Content struct {
	Location
	Bytes []byte
}

// Placement is a change of files that has been made and can still be undone.
type Placement struct {
	staging *Staging
	change  string // the change's folder
	journal *os.File
	steps   []step // those in the journal
	count   int
	folders map[string]bool // known to exist
	pending []Location      // to be removed, at the end or as soon as they are in the way
	removed []string
}

// Place writes all contents and removes all locations, or does nothing. Readers never see a partly
// written file. Missing locations are ignored, and folders that become empty are removed.
func Place(staging *Staging, contents []Content, removed []Location) (*Placement, error) {
	change, err := staging.NewFolder()
	if err != nil {
		return nil, err
	}
	p := &Placement{staging: staging, change: change, folders: map[string]bool{}, pending: removed}
	p.journal, err = os.OpenFile(p.file(journalName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(change))
	}
	if err := p.place(contents); err != nil {
		return nil, errors.Join(err, p.Undo())
	}
	return p, nil
}

// place writes before it removes, so that a renamed document can be read at any time. It removes
// first only what is in the way of a new file (`a` is renamed to `a/b`).
func (p *Placement) place(contents []Content) error {
	names := make([]string, len(contents))
	for i, content := range contents {
		names[i] = p.newName()
		if err := os.WriteFile(p.file(names[i]), content.Bytes, 0o644); err != nil {
			return err
		}
	}
	for i, content := range contents {
		if err := p.put(names[i], content.Location); err != nil {
			return err
		}
	}
	return p.removeBelow("")
}

func (p *Placement) newName() string {
	p.count++
	return strconv.Itoa(p.count)
}

func (p *Placement) file(name string) string { return filepath.Join(p.change, name) }

func (p *Placement) put(name string, location Location) error {
	target := location.file()
	if err := p.makeFolder(location.Root, path.Dir(location.Path)); err != nil {
		return err
	}
	if Exists(target) {
		if err := p.clear(target); err != nil {
			return err
		}
	}
	relative, err := filepath.Rel(p.staging.home, target)
	if err != nil {
		return err
	}
	old := p.newName()
	if err := p.record(step{Put: relative, NewName: name, OldName: old}); err != nil {
		return err
	}
	// Hard links: the new file itself stays, so that an undo recognizes it, and a document that is
	// replaced never disappears from its path.
	if err := os.Link(p.file(name), target); !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Link(target, p.file(old)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	link := p.file(name + ".link")
	if err := os.Link(p.file(name), link); err != nil {
		return err
	}
	return os.Rename(link, target)
}

// makeFolder creates a folder below the root and those above it.
func (p *Placement) makeFolder(root, name string) error {
	if name == "." || p.folders[filepath.Join(root, name)] {
		return nil
	}
	if err := p.makeFolder(root, path.Dir(name)); err != nil {
		return err
	}
	folder := filepath.Join(root, name)
	if !Exists(folder) {
		if err := p.clear(folder); err != nil {
			return err
		}
		if err := os.Mkdir(folder, 0o755); err != nil {
			return err
		}
	}
	p.folders[folder] = true
	return nil
}

// clear makes room at a place: it removes what the change is to remove, and empty folders.
func (p *Placement) clear(place string) error {
	if info, err := lstat(place); info == nil || err != nil {
		return err
	}
	if err := p.removeBelow(place); err != nil {
		return err
	}
	if err := clearFolders(place); err != nil {
		return err
	}
	if info, err := lstat(place); info != nil || err != nil {
		return errors.Join(err, problem.New(problem.Conflict, "%q is in the way and is not a document", filepath.Base(place)))
	}
	return nil
}

// removeBelow carries out the removals at or below a place that are still pending; all of them if it is
// empty.
func (p *Placement) removeBelow(place string) error {
	var remaining []Location
	for i, location := range p.pending {
		if place != "" && !strings.HasPrefix(location.file()+"/", place+"/") {
			remaining = append(remaining, location)
			continue
		}
		if err := p.remove(location); err != nil {
			p.pending = append(remaining, p.pending[i:]...)
			return err
		}
	}
	p.pending = remaining
	return nil
}

// remove moves away a file or a whole folder.
func (p *Placement) remove(location Location) error {
	if info, err := lstat(location.file()); info == nil || err != nil {
		return err
	}
	relative, err := filepath.Rel(p.staging.home, location.file())
	if err != nil {
		return err
	}
	old := p.newName()
	if err := p.record(step{Remove: relative, OldName: old}); err != nil {
		return err
	}
	err = os.Rename(location.file(), p.file(old))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil // removed by hand
	}
	p.removed = append(p.removed, relative)
	return err
}

// Undo restores the previous files. If that fails, the change's folder and its journal stay, because
// they may hold the only copies, and the next start tries again.
func (p *Placement) Undo() error {
	if err := undo(p.staging.home, p.change, p.steps); err != nil {
		slog.Error("cannot undo a change; the original files are kept", "folder", p.change, "error", err)
		return errors.Join(err, p.journal.Close())
	}
	return p.end()
}

// Keep commits the placement; if it fails, Undo is still possible.
func (p *Placement) Keep() error {
	if err := p.end(); err != nil {
		return err
	}
	for _, path := range p.removed {
		removeEmptyAbove(p.staging.home, path)
	}
	return nil
}

func (p *Placement) end() error {
	if err := endJournal(p.change); err != nil {
		return err
	}
	if err := errors.Join(p.journal.Close(), os.RemoveAll(p.change)); err != nil {
		slog.Warn("cannot clear the staging folder", "error", err)
	}
	return nil
}
