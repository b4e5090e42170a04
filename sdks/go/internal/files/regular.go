package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// OpenRegular opens a regular file for reading. To anything else, such as a link or a pipe, whose
// reader would wait for its writer, it is as if nothing were there: it fails with fs.ErrNotExist.
func OpenRegular(name string) (*os.File, error) {
	missing := &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENXIO): // a link, a socket
		return nil, missing
	case err != nil:
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = missing
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// ReadRegular returns the content of a regular file; it fails as OpenRegular does.
func ReadRegular(name string) ([]byte, error) {
	file, err := OpenRegular(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(file)
}

// MakeFolder creates a folder, in place of a link or a pipe. It fails if a regular file is there, which
// is somebody's data.
func MakeFolder(name string) error {
	if Exists(name) {
		return nil
	}
	if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrExist}
	}
	// A link is removed, never what it leads to.
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Mkdir(name, 0o755)
}
