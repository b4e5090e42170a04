package brain

import (
	"context"
	"path"
	"strings"

	"memoryd/internal/files"
	"memoryd/internal/problem"
)

// refuseConflict refuses a path that would be both a file and a folder, itself or through its
// sidecar. Only documents count, not stray files.
func (d *draft) refuseConflict(ctx context.Context, name string) error {
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		// The sidecar of `a` is the file `a.json`, which `a.json/b` would need as a folder.
		for _, owner := range []string{folder, strings.TrimSuffix(folder, ".json")} {
			if there, err := d.isDocument(owner); err != nil {
				return err
			} else if there {
				return problem.New(problem.Conflict, "%q: conflicts with the document %q", name, owner)
			}
		}
		if kind, err := d.documents.Kind(folder); err != nil {
			return err
		} else if kind == files.Foreign {
			return problem.New(problem.Conflict, "%q: %q is not a folder of this brain", name, folder)
		}
	}
	for _, folder := range []string{name, sidecarOf(name)} {
		if there, err := d.isFolder(ctx, folder); err != nil {
			return err
		} else if there {
			return problem.New(problem.Conflict, "%q: %q is a folder", name, folder)
		}
	}
	return nil
}

func (d *draft) isDocument(name string) (bool, error) {
	if e := d.entries[name]; e != nil {
		return e.there, nil
	}
	kind, err := d.documents.Kind(name)
	return kind == files.Regular, err
}

func (d *draft) isFolder(ctx context.Context, name string) (bool, error) {
	if d.folders[name] > 0 {
		return true, nil
	}
	if kind, err := d.documents.Kind(name); err != nil || kind != files.Folder {
		return false, err
	}
	return d.documents.HoldsDocument(ctx, name, func(document string) bool { return d.entries[document] != nil })
}
