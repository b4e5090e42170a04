package brain

import (
	"context"
	"path"
	"strings"

	"memoryd/internal/files"
	"memoryd/internal/problem"
)

// refuseConflict refuses a path that would be file and folder at once, by itself or by the place of
// its sidecar. Documents decide, not the files that happen to lie there.
func (d *draft) refuseConflict(ctx context.Context, name string) error {
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		// The sidecar of `a` is `a.json`, where `a.json/b` would need a folder.
		for _, owner := range []string{folder, strings.TrimSuffix(folder, ".json")} {
			if there, err := d.isDocument(owner); err != nil {
				return err
			} else if there {
				return problem.New(problem.Conflict, "%q: there is a document %q", name, owner)
			}
		}
		if kind, err := d.documents.Kind(folder); err != nil {
			return err
		} else if kind == files.Foreign {
			return problem.New(problem.Conflict, "%q: %q is no folder of this brain", name, folder)
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
	return d.documents.HoldsDocument(ctx, name, func(found string) bool { return d.entries[found] != nil })
}
