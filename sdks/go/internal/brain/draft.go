package brain

import (
	"context"
	"path"
	"slices"

	"memoryd/internal/feed"
	"memoryd/internal/files"
	"memoryd/internal/problem"
	"memoryd/internal/wire"
)

// draft is the outcome of operations on the documents, computed before any file is touched.
type draft struct {
	documents, sidecars *files.Tree

	entries map[string]*entry
	folders map[string]int // the number of existing entries below each folder
	changes []feed.Change
}

// entry is a document that an operation refers to.
type entry struct {
	stored bool // existed before the first operation
	there  bool

	content, sidecar part
}

// part is one of a document's files; nil bytes mean that the file does not exist.
type part struct {
	tree    *files.Tree
	path    string
	bytes   []byte
	read    bool
	changed bool
}

func (p *part) get() (_ []byte, err error) {
	if !p.read {
		p.bytes, err = p.tree.Read(p.path)
		p.read = err == nil
	}
	return p.bytes, err
}

func (p *part) set(bytes []byte) { p.bytes, p.read, p.changed = bytes, true, true }

func (b *Brain) draft(ctx context.Context, operations []Operation) (*draft, error) {
	d := &draft{
		documents: files.NewTree(b.layout.documents),
		sidecars:  files.NewTree(b.layout.sidecars),
		entries:   make(map[string]*entry, len(operations)),
		folders:   map[string]int{},
	}
	for i, operation := range operations {
		if err := d.apply(ctx, operation); err != nil {
			return nil, &Refusal{Index: i, Err: err}
		}
	}
	return d, nil
}

func (d *draft) apply(ctx context.Context, o Operation) error {
	switch o.Kind {
	case Delete:
		return d.delete(o.Path)
	case Rename:
		return d.rename(ctx, o.Path, o.To)
	default:
		return d.write(ctx, o)
	}
}

// write writes or appends.
func (d *draft) write(ctx context.Context, o Operation) error {
	e, kind, err := d.open(ctx, o.Path)
	if err != nil {
		return err
	}
	content := slices.Clip(o.Content) // so that an append does not write past it
	if o.Kind == Append {
		before, err := e.content.get()
		if err != nil {
			return err
		}
		content = append(before, content...)
	}
	e.content.set(content)
	if o.Sidecar != nil {
		sidecar, err := wire.Marshal(o.Sidecar)
		if err != nil {
			return err
		}
		e.sidecar.set(sidecar)
	}
	d.changes = append(d.changes, feed.Change{Kind: kind, Path: o.Path})
	return nil
}

func (d *draft) delete(name string) error {
	e, err := d.existing(name)
	if err != nil {
		return err
	}
	d.remove(name, e)
	d.changes = append(d.changes, feed.Change{Kind: feed.Deleted, Path: name})
	return nil
}

func (d *draft) rename(ctx context.Context, from, to string) error {
	e, err := d.existing(from)
	if err != nil || from == to {
		return err
	}
	content, err := e.content.get()
	if err != nil {
		return err
	}
	sidecar, err := e.sidecar.get()
	if err != nil {
		return err
	}
	d.remove(from, e)
	target, _, err := d.open(ctx, to)
	if err != nil {
		return err
	}
	target.content.set(content)
	target.sidecar.set(sidecar)
	d.changes = append(d.changes, feed.Change{Kind: feed.Renamed, Path: to, OldPath: from})
	return nil
}

func (d *draft) entry(name string) (*entry, error) {
	if e := d.entries[name]; e != nil {
		return e, nil
	}
	kind, _, err := d.documents.Find(name)
	if err != nil {
		return nil, err
	}
	e := &entry{
		stored:  kind == files.Regular,
		content: part{tree: d.documents, path: name},
		sidecar: part{tree: d.sidecars, path: sidecarOf(name)},
	}
	d.entries[name] = e
	if e.stored {
		d.place(name, e, true)
	}
	return e, nil
}

// existing returns the entry of a document; it fails with NotFound if there is none.
func (d *draft) existing(name string) (*entry, error) {
	e, err := d.entry(name)
	if err == nil && !e.there {
		err = problem.New(problem.NotFound, "no document %q", name)
	}
	return e, err
}

// open returns the entry of a document to be written, creating it if necessary.
func (d *draft) open(ctx context.Context, name string) (*entry, feed.Kind, error) {
	e, err := d.entry(name)
	if err != nil || e.there {
		return e, feed.Updated, err
	}
	if err := d.refuseConflict(ctx, name); err != nil {
		return nil, "", err
	}
	d.place(name, e, true)
	e.content.set(nil)
	e.sidecar.set(nil) // an existing file belongs to a document that was removed by hand
	return e, feed.Created, nil
}

func (d *draft) remove(name string, e *entry) {
	d.place(name, e, false)
	e.content.set(nil)
	e.sidecar.set(nil)
}

func (d *draft) place(name string, e *entry, there bool) {
	e.there = there
	step := 1
	if !there {
		step = -1
	}
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		d.folders[folder] += step
	}
}
