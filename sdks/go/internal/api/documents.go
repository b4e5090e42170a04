package api

import (
	"io"
	"net/http"
	"strconv"

	"memoryd/internal/brain"
	"memoryd/internal/files"
	"memoryd/internal/problem"
)

func readDocument(w http.ResponseWriter, _ *http.Request, b *brain.Brain, path string) error {
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

func probeDocument(w http.ResponseWriter, r *http.Request, b *brain.Brain, path string) error {
	entry, err := b.Stat(r.Context(), path)
	if err != nil {
		return err
	}
	if entry.IsFolder {
		return problem.New(problem.NotFound, "%q is a folder", entry.Path)
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

func statDocument(w http.ResponseWriter, r *http.Request, b *brain.Brain, path string) error {
	entry, err := b.Stat(r.Context(), path)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, entry)
}

func listDocuments(w http.ResponseWriter, r *http.Request, b *brain.Brain) error {
	selection, err := readSelection(r)
	if err != nil {
		return err
	}
	entries, err := b.List(r.Context(), selection)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, map[string]any{"items": entries})
}

func readSelection(r *http.Request) (s files.Selection, err error) {
	parameters, err := readParameters(r, "dir", "recursive", "include_generated", "glob")
	if err != nil {
		return s, err
	}
	var c checker
	if s.Folder = parameters["dir"]; s.Folder != "" {
		c.path("dir", &s.Folder)
	}
	s.Recursive = c.flag("recursive", parameters)
	s.Hidden = c.flag("include_generated", parameters)
	if glob, restricts := parameters["glob"]; restricts {
		s.Glob = files.NewGlob(glob)
	}
	return s, c.err
}
