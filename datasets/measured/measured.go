package measured

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

//go:embed *.parquet *.json
var files embed.FS

// Set is the outcome of one or several campaigns on one machine.
type Set struct {
	Name     string `json:"name"`     // of the set, and of its files
	Doc      string `json:"doc"`      // one line: what was measured
	Machine  string `json:"machine"`  // description of the machine
	Software string `json:"software"` // versions of the training stack
	Command  string `json:"command"`  // that measured the set
	// Campaigns are those of the rows; none = one with the name of the set.
	Campaigns []string `json:"campaigns,omitempty"`
	Date      string   `json:"date"`   // first day of measuring, 2006-01-02
	Commit    string   `json:"commit"` // of this repository at the time
	Rows      int      `json:"rows"`   // measurements, whatever their outcome
	Notes     string   `json:"notes,omitempty"`

	Parquet []byte `json:"-"` // the rows, in the columns of perfmodel/rowfile/FORMAT.md
}

var sets = readSets()

// Sets returns every set, by name.
func Sets() []Set { return sets.All() }

// Lookup returns the set with a name. The error for an unknown one lists all names, nearest first.
func Lookup(name string) (Set, error) { return sets.Get(name) }

// readSets reads the embedded files. They are part of the program, so an invalid one is a bug and
// panics.
func readSets() *named.Set[Set] {
	out := named.NewSet[Set]("measured", "measured set")
	names, err := fs.Glob(files, "*.json")
	if err != nil {
		panic("measured: " + err.Error())
	}
	for _, file := range names {
		s, err := readSet(strings.TrimSuffix(file, path.Ext(file)))
		if err != nil {
			panic(fmt.Sprintf("measured: %s: %v", file, err))
		}
		out.Add(s.Name, s)
	}
	return out
}

func readSet(name string) (s Set, err error) {
	text, err := files.ReadFile(name + ".json")
	if err != nil {
		return s, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return s, err
	}
	if s.Name != name {
		return s, fmt.Errorf("the set is called %q", s.Name)
	}
	s.Parquet, err = files.ReadFile(name + ".parquet")
	return s, err
}
