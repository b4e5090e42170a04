package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Walk calls visit for every regular file below a folder of root whose path is valid for a document;
// it does not follow links. The root is a clean path; the folder is a canonical path, or empty for root itself.
func Walk(ctx context.Context, root, folder string, visit func(path string, info fs.FileInfo) error) error {
	return filepath.WalkDir(filepath.Join(root, folder), func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed by hand after its folder was read
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		path := strings.TrimPrefix(name, root+"/")
		if CheckPath(path) != nil {
			return nil
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return visit(path, info)
	})
}

// Stamp returns a value that changes when the document or its sidecar does; sidecar may be nil.
func Stamp(document, sidecar fs.FileInfo) string {
	if sidecar == nil {
		return stampOf(document)
	}
	return stampOf(document) + " " + stampOf(sidecar)
}

// stampOf includes the inode, which distinguishes two writes within one tick of the clock.
func stampOf(info fs.FileInfo) string {
	inode := uint64(0)
	if status, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = status.Ino
	}
	return fmt.Sprintf("%d:%d:%d", info.Size(), info.ModTime().UnixNano(), inode)
}

// Exists reports whether a folder of this name exists; a link to a folder does not count.
func Exists(folder string) bool {
	info, err := os.Lstat(folder)
	return err == nil && info.IsDir()
}
