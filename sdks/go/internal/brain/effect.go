package brain

import (
	"maps"
	"path"
	"slices"

	"memoryd/internal/files"
	"memoryd/internal/problem"
)

// effect translates the draft into files to write and to remove.
func (b *Brain) effect(d *draft) (contents []files.Content, removed []files.Location, err error) {
	for _, name := range slices.Sorted(maps.Keys(d.entries)) {
		e := d.entries[name]
		document := files.Location{Root: b.layout.documents, Path: name}
		sidecar := files.Location{Root: b.layout.sidecars, Path: sidecarOf(name)}
		switch {
		case !e.sidecar.changed:
		case e.sidecar.bytes != nil:
			blocking, err := d.blocking(sidecar)
			if err != nil {
				return nil, nil, err
			}
			contents = append(contents, files.Content{Location: sidecar, Bytes: e.sidecar.bytes})
			removed = append(removed, blocking...)
		default:
			if kind, _, err := d.sidecars.Find(sidecar.Path); err != nil {
				return nil, nil, err
			} else if kind == files.Regular {
				removed = append(removed, sidecar)
			}
		}
		switch {
		case e.there && e.content.changed:
			contents = append(contents, files.Content{Location: document, Bytes: e.content.bytes})
		case e.stored && !e.there:
			removed = append(removed, document)
		}
	}
	return contents, removed, nil
}

// blocking lists the files in the way of a sidecar. They belong to documents that were removed by
// hand; otherwise the draft would have been refused.
func (d *draft) blocking(sidecar files.Location) (removed []files.Location, err error) {
	kind, _, err := d.sidecars.Find(sidecar.Path)
	if err != nil {
		return nil, err
	}
	if kind == files.Folder {
		removed = append(removed, sidecar)
	}
	for folder := path.Dir(sidecar.Path); folder != "."; folder = path.Dir(folder) {
		kind, err := d.sidecars.Kind(folder)
		if err != nil {
			return nil, err
		}
		switch kind {
		case files.Regular:
			removed = append(removed, files.Location{Root: sidecar.Root, Path: folder})
		case files.Foreign:
			return nil, problem.New(problem.Conflict, "%q: the path of its sidecar leads through a link", sidecar.Path)
		}
	}
	return removed, nil
}
