package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"memoryd/internal/wire"
)

// journalName is the file of a work folder that says where the others belong. While it exists, the
// change is not committed.
const journalName = "journal"

// journal is locked while its daemon works on the change; the lock ends with the process.
type journal struct{ file *os.File }

// record stores roots relative to the staging folder, because the state folder may be moved.
type record struct {
	Placed  []Location `json:"placed"`
	Removed []Location `json:"removed"`
}

// writeJournal takes the lock before the journal gets its name, so that nobody finds it unlocked.
func writeJournal(staging, work string, placed, removed []Location) (*journal, error) {
	var r record
	var err error
	if r.Placed, err = relative(staging, placed); err != nil {
		return nil, err
	}
	if r.Removed, err = relative(staging, removed); err != nil {
		return nil, err
	}
	encoded, err := wire.Marshal(r)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(work, journalName)
	file, err := os.OpenFile(name+".part", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		_, err = file.Write(encoded)
	}
	if err == nil {
		err = os.Rename(name+".part", name)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &journal{file}, nil
}

// openJournal returns nil if another process works on the change or has ended it in the meantime.
func openJournal(work string) (*journal, error) {
	name := filepath.Join(work, journalName)
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, file.Close()
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil, file.Close()
	}
	return &journal{file}, nil
}

func (j *journal) read(staging string) (placed, removed []Location, err error) {
	encoded, err := io.ReadAll(j.file)
	if err != nil {
		return nil, nil, err
	}
	var r record
	if err := wire.Unmarshal(encoded, &r); err != nil {
		return nil, nil, err
	}
	for _, locations := range [][]Location{r.Placed, r.Removed} {
		for i := range locations {
			locations[i].Root = filepath.Join(staging, locations[i].Root)
		}
	}
	return r.Placed, r.Removed, nil
}

// end removes the journal; from then on nobody undoes the change.
func (j *journal) end(work string) error {
	err := os.Remove(filepath.Join(work, journalName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed by hand
	}
	return err
}

func (j *journal) close() error { return j.file.Close() }

func relative(staging string, locations []Location) ([]Location, error) {
	moved := make([]Location, len(locations))
	for i, location := range locations {
		root, err := filepath.Rel(staging, location.Root)
		if err != nil {
			return nil, err
		}
		moved[i] = Location{Root: root, Path: location.Path}
	}
	return moved, nil
}
