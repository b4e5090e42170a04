package brain

import (
	"errors"
	"os"
	"path/filepath"

	"memoryd/internal/files"
)

const indexSuffix = ".log"

// Home is the state folder.
type Home string

// layout holds the paths of one brain's parts.
type layout struct {
	documents, sidecars, description, index, lock string
}

func (h Home) layout(id string) layout {
	return layout{
		documents:   filepath.Join(string(h), "brains", id),
		sidecars:    filepath.Join(string(h), "meta", id),
		description: filepath.Join(string(h), "descriptions", id+".txt"),
		index:       filepath.Join(string(h), "index", "go", id+indexSuffix),
		lock:        filepath.Join(string(h), "index", "go", id+".lock"),
	}
}

// prepare creates the folders that all brains share.
func (h Home) prepare() error {
	var failures []error
	for _, folder := range []string{"brains", "meta", "descriptions", "staging", "index/go"} {
		failures = append(failures, os.MkdirAll(files.Join(string(h), folder), 0o755))
	}
	return errors.Join(failures...)
}
