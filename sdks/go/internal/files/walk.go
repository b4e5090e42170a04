package files

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Walk calls visit with the path of every regular file below root that a document could have; links
// are not followed.
func Walk(ctx context.Context, root string, visit func(path string, info fs.FileInfo) error) error {
	return filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		path, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		path = filepath.ToSlash(path)
		if CheckPath(path) != nil {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return visit(path, info)
	})
}

// Stamp changes when the document or its sidecar does.
func Stamp(document fs.FileInfo, sidecar string) (string, error) {
	beside, err := os.Stat(sidecar)
	if os.IsNotExist(err) {
		return stampOf(document), nil
	}
	if err != nil {
		return "", err
	}
	return stampOf(document) + " " + stampOf(beside), nil
}

// stampOf holds the inode, which tells two writes in one tick of the clock.
func stampOf(info fs.FileInfo) string {
	inode := uint64(0)
	if status, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = status.Ino
	}
	return fmt.Sprintf("%d:%d:%d", info.Size(), info.ModTime().UnixNano(), inode)
}

// Exists tells whether there is a folder of this name.
func Exists(folder string) bool {
	info, err := os.Stat(folder)
	return err == nil && info.IsDir()
}

// Join places a canonical path below a folder.
func Join(folder, path string) string { return filepath.Join(folder, filepath.FromSlash(path)) }
