package files

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// databaseLock is an exclusive transaction on an empty SQLite database. Daemons in all languages share
// SQLite's locks, which end with the process.
type databaseLock struct {
	db   *sql.DB
	conn *sql.Conn
}

// lockDatabase returns nil if another process still holds the lock after the wait.
func lockDatabase(file string, wait time.Duration) (*databaseLock, error) {
	lock, err := beginExclusive(file, wait)
	if !hasCode(err, sqlite3.SQLITE_NOTADB) {
		return lock, err
	}
	// Nobody holds the lock of a damaged file, and it holds no data.
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return beginExclusive(file, wait)
}

func beginExclusive(file string, wait time.Duration) (*databaseLock, error) {
	options := url.Values{"_pragma": {fmt.Sprintf("busy_timeout(%d)", wait.Milliseconds())}}
	source := &url.URL{Scheme: "file", Path: file, RawQuery: options.Encode()}
	db, err := sql.Open("sqlite", source.String())
	if err != nil {
		return nil, err
	}
	// Not a caller's context: the driver closes a connection whose context ends.
	ctx := context.Background()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	lock := &databaseLock{db, conn}
	if _, err := conn.ExecContext(ctx, "BEGIN EXCLUSIVE"); err != nil {
		closed := lock.release()
		if hasCode(err, sqlite3.SQLITE_BUSY) {
			return nil, closed
		}
		return nil, errors.Join(err, closed)
	}
	return lock, nil
}

func (l *databaseLock) release() error { return errors.Join(l.conn.Close(), l.db.Close()) }

func hasCode(err error, code int) bool {
	var refused *sqlite.Error
	return errors.As(err, &refused) && refused.Code()&0xFF == code
}

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
