package brain

import (
	"errors"
	"os"
	"syscall"
)

// lock locks an index for this process until the file is closed, which the operating system does
// when the process dies. It returns nil if another process holds the lock.
func lock(file string) (*os.File, error) {
	handle, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(handle.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return handle, nil
	}
	_ = handle.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, err
}
