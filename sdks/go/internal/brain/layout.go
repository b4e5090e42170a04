package brain

import "path/filepath"

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
