package files

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"memoryd/internal/wire"
)

// journalName is the file of a change's folder that says where the others belong. While it exists, the
// change is not committed. Its format is the contract's (state.journal), the same for every SDK.
const journalName = "journal"

// step is one line of a journal: put or remove is a file relative to the state folder, which may be
// moved; oldName and newName are files of the change's folder.
type step struct {
	Put     string `json:"put,omitzero"`
	Remove  string `json:"remove,omitzero"`
	NewName string `json:"new,omitzero"`
	OldName string `json:"old"`
}

func (s step) target() string { return s.Put + s.Remove }

// brain returns the folder of the brain that the step belongs to.
func (s step) brain(home string) string {
	return filepath.Join(home, "brains", strings.Split(s.target(), "/")[1])
}

// record writes a step to the journal before it is taken. To undo a step that was not taken does no harm.
func (p *Placement) record(s step) error {
	line, err := wire.Marshal(s)
	if err != nil {
		return err
	}
	if _, err := p.journal.Write(append(line, '\n')); err != nil {
		return err
	}
	p.steps = append(p.steps, s)
	return nil
}

// endJournal removes the journal; from then on nobody undoes the change.
func endJournal(change string) error {
	err := os.Remove(filepath.Join(change, journalName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed by hand
	}
	return err
}

// readJournal returns the steps of a change; it fails if a line is not a step.
func readJournal(change string) ([]step, error) {
	encoded, err := ReadRegular(filepath.Join(change, journalName))
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(encoded, []byte{'\n'})
	var steps []step
	// A line without its newline was cut off by the kill, before its step was taken.
	for _, line := range lines[:len(lines)-1] {
		s, err := parseStep(line)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

var targetPattern = regexp.MustCompile(`^(brains|meta)/[A-Za-z0-9._-]{1,128}/[^\x00]+$`)

func parseStep(line []byte) (s step, err error) {
	var object map[string]string
	if err := wire.Unmarshal(line, &object); err != nil {
		return s, fmt.Errorf("the line %.80q is not a step", line)
	}
	s = step{Put: object["put"], Remove: object["remove"], NewName: object["new"], OldName: object["old"]}
	isPut := len(object) == 3 && s.Put != "" && s.NewName != ""
	if !isPut && (len(object) != 2 || s.Remove == "") {
		return s, fmt.Errorf("the line %.80q is not a step", line)
	}
	names := s.target() + "/" + s.OldName
	if isPut {
		names += "/" + s.NewName
	}
	if path.Clean(names) != names {
		return s, fmt.Errorf("the line %.80q has a path that is not canonical", line)
	}
	if !targetPattern.MatchString(s.target()) || strings.ContainsAny(s.OldName+s.NewName, "/\x00") ||
		s.OldName == journalName || s.NewName == journalName {
		return s, fmt.Errorf("the line %.80q names a file that is not a change's", line)
	}
	return s, nil
}
