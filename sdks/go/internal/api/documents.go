package api

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"memoryd/internal/brain"
	"memoryd/internal/files"
	"memoryd/internal/moment"
	"memoryd/internal/problem"
)

type documentShown struct {
	Path     string    `json:"path"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"mtime"`
	IsFolder bool      `json:"is_dir"`
}

func newDocumentShown(e files.Entry) documentShown {
	return documentShown{Path: e.Path, Size: e.Size, Modified: moment.Bound(e.Modified), IsFolder: e.IsFolder}
}

// located returns the brain and the path of a request.
func (a *API) located(r *http.Request) (b *brain.Brain, path string, err error) {
	if b, err = a.brain(r); err != nil {
		return nil, "", err
	}
	path, err = pathParameter(r)
	return b, path, err
}

func (a *API) readDocument(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	b, path, err := a.located(r)
	if err != nil {
		return err
	}
	document, err := b.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = document.Close() }()
	info, err := document.Stat()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	w.WriteHeader(http.StatusOK)
	// A failed write means that the client has disconnected; there is nobody to tell.
	_, _ = io.CopyN(w, document, info.Size())
	return nil
}

func (a *API) probeDocument(w http.ResponseWriter, r *http.Request) error {
	entry, err := a.stat(w, r)
	if err != nil {
		return err
	}
	if entry.IsFolder {
		return problem.New(problem.NotFound, "%q is a folder", entry.Path)
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

func (a *API) statDocument(w http.ResponseWriter, r *http.Request) error {
	entry, err := a.stat(w, r)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, newDocumentShown(entry))
}

func (a *API) stat(w http.ResponseWriter, r *http.Request) (files.Entry, error) {
	w.Header().Set("Cache-Control", "no-store")
	b, path, err := a.located(r)
	if err != nil {
		return files.Entry{}, err
	}
	return b.Stat(r.Context(), path)
}

func (a *API) listDocuments(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	b, err := a.brain(r)
	if err != nil {
		return err
	}
	selection, err := readSelection(r)
	if err != nil {
		return err
	}
	entries, err := b.List(r.Context(), selection)
	if err != nil {
		return err
	}
	items := make([]documentShown, len(entries))
	for i, entry := range entries {
		items[i] = newDocumentShown(entry)
	}
	return reply(w, http.StatusOK, struct {
		Items []documentShown `json:"items"`
	}{items})
}

func readSelection(r *http.Request) (s files.Selection, err error) {
	parameters, err := readParameters(r, "dir", "recursive", "include_generated", "glob")
	if err != nil {
		return s, err
	}
	if s.Folder = parameters["dir"]; s.Folder != "" {
		if err := checkPath("dir", s.Folder); err != nil {
			return s, err
		}
	}
	if s.Recursive, err = parameters.flag("recursive"); err != nil {
		return s, err
	}
	if s.Hidden, err = parameters.flag("include_generated"); err != nil {
		return s, err
	}
	if glob, restricts := parameters["glob"]; restricts {
		s.Glob = files.NewGlob(glob)
	}
	return s, nil
}
