package files

import (
	"os"
	"path/filepath"
	"time"
)

// staleAfter spares the work of a second daemon on the same state.
const staleAfter = time.Hour

// Sweep removes what a daemon that was killed has left in staging.
func Sweep(staging string) error {
	left, err := os.ReadDir(staging)
	if err != nil {
		return err
	}
	for _, entry := range left {
		info, err := entry.Info()
		if err != nil || time.Since(info.ModTime()) < staleAfter {
			continue // gone meanwhile, or somebody's work
		}
		if err := os.RemoveAll(filepath.Join(staging, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
