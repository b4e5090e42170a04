package index

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"slices"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// format changes when the indexes of older daemons can no longer be used.
const format = "3"

//go:embed schema.sql
var schema string

// errUnusable means that the index is damaged, or was made with another format or embedder.
var errUnusable = errors.New("the index is unusable")

// Open opens the index in file, or one in memory if file is empty, for vectors of the embedder of
// this name. It replaces an unusable index, also one that lacks a table (SQLITE_ERROR), by an empty one.
func Open(ctx context.Context, file, embedder string) (*Index, error) {
	// A cancelled caller must not look like damage.
	ctx = withoutCancel(ctx)
	if file != "" {
		if err := restore(ctx, file, format+"/"+embedder); err != nil {
			return nil, fmt.Errorf("cannot restore the index: %w", err)
		}
	}
	ix, err := open(ctx, file, embedder)
	if file != "" && (errors.Is(err, errUnusable) || IsDamage(err) || hasCode(err, sqlite3.SQLITE_ERROR)) {
		if err := Remove(file); err != nil {
			return nil, err
		}
		ix, err = open(ctx, file, embedder)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the index: %w", err)
	}
	return ix, nil
}

func open(ctx context.Context, file, embedder string) (_ *Index, err error) {
	db, err := sql.Open("sqlite", source(file))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = db.Close()
		}
	}()
	connections := runtime.GOMAXPROCS(0) + 1
	if file == "" {
		connections = 1 // each connection would open its own in-memory database
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	madeBy := format + "/" + embedder
	if err := prepareSchema(ctx, db, madeBy); err != nil {
		return nil, err
	}
	ix := &Index{db: db, file: file, madeBy: madeBy, readers: min(connections, runtime.GOMAXPROCS(0))}
	return ix, ix.load(ctx)
}

// source returns the driver's name for the database. An acknowledged write must survive a crash of
// the process, not of the machine, so nothing is fsynced.
func source(file string) string {
	options := url.Values{
		"_pragma": {"journal_mode(WAL)", "synchronous(OFF)"},
		"_txlock": {"immediate"},
	}
	if file == "" {
		return "file::memory:?" + options.Encode()
	}
	return (&url.URL{Scheme: "file", Path: file, RawQuery: options.Encode()}).String()
}

func prepareSchema(ctx context.Context, db *sql.DB, madeBy string) error {
	var tables int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	if tables == 0 {
		_, err := db.ExecContext(ctx,
			"BEGIN;"+schema+"INSERT INTO settings VALUES ('made_by', ?); COMMIT", madeBy)
		return err
	}
	var found string
	err := db.QueryRowContext(ctx, "SELECT value FROM settings WHERE key = 'made_by'").Scan(&found)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if found != madeBy {
		return errUnusable
	}
	return nil
}

// Remove deletes the files of an index.
func Remove(file string) error {
	for _, suffix := range []string{"", "-wal", "-shm", ".seal"} {
		if err := os.Remove(file + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// IsDamage reports whether SQLite found that the content of the file is corrupt.
func IsDamage(err error) bool {
	return hasCode(err, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
}

func hasCode(err error, codes ...int) bool {
	var refused *sqlite.Error
	return errors.As(err, &refused) && slices.Contains(codes, refused.Code()&0xFF)
}
