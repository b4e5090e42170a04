package files

import (
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"
)

// lockPoll is how long to wait before another attempt to get a lock.
const lockPoll = 10 * time.Millisecond

// lockDatabase takes the lock that a transaction takes which begins with `BEGIN EXCLUSIVE` on the SQLite
// database in file, and which daemons in all languages share: a write lock on the bytes that SQLite
// reserves for it (https://sqlite.org/lockingv3.html). Closing it releases it, and so does the end of
// the process. It returns nil if another process still holds the lock after the wait.
func lockDatabase(file string, wait time.Duration) (io.Closer, error) {
	handle, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	bytes := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: 0x40000000, Len: 512}
	for until := time.Now().Add(wait); ; time.Sleep(lockPoll) {
		err := syscall.FcntlFlock(handle.Fd(), setLock, &bytes)
		if err == nil {
			return handle, nil
		}
		if isHeld := errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES); isHeld && time.Now().Before(until) {
			continue
		} else if isHeld {
			err = nil
		}
		return nil, errors.Join(err, handle.Close())
	}
}

// setLock is the command for a lock that belongs to the open file, where there is one: any other is
// lost as soon as the process closes another handle of the file.
var setLock = func() int {
	if runtime.GOOS == "linux" {
		return 37 // F_OFD_SETLK
	}
	return syscall.F_SETLK
}()

// LockFile locks a file for this process until the file is closed, which the operating system does
// when the process dies. It returns nil if another process holds the lock.
func LockFile(file string) (*os.File, error) {
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
