package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4"
)

// state is what inspect found in a directory.
type state struct {
	empty     bool     // no store yet
	sealed    bool     // closed properly
	format    int      // of versionFile
	emptyLogs []string // log files whose writer was killed before the first byte
	temps     []string // of writeFile, left by a killed writer
}

// inspect checks all files of the store in dir and changes none. The engine
// drops what it cannot read, deletes tables its MANIFEST does not name and
// ends the program on some damage, so it is given checked files only.
func inspect(dir string) (state, error) {
	var st state
	names, temps, err := engineFiles(dir)
	if err != nil {
		return st, err
	}
	st.temps = temps
	if st.format, err = readVersion(dir); err != nil {
		return st, err
	}
	switch {
	case st.format > formatVersion:
		return st, fmt.Errorf("%s is in format %d, this program knows up to %d: use a newer one: %w", dir, st.format, formatVersion, ErrNewer)
	case len(names) == 0:
		st.empty = true
		return st, nil
	case st.format == 0:
		return st, corrupt(dir, versionFile, errors.New("the file is missing"))
	}
	if st.sealed, err = checkSeal(dir); err != nil || st.sealed {
		return st, err
	}
	return st, st.inspectCrashed(dir, names)
}

// prepare readies inspected files for writing: from here on a crash is
// expected, the format may become the newest.
func (st state) prepare(dir string) error {
	if st.format != formatVersion {
		if err := writeVersion(dir, formatVersion); err != nil {
			return err
		}
	}
	for _, name := range append(st.emptyLogs, st.temps...) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if !st.sealed {
		return nil
	}
	if err := os.Remove(filepath.Join(dir, sealFile)); err != nil {
		return err
	}
	return syncDir(dir)
}

// engineFiles returns the names of the engine's files in dir, and those of
// unfinished copies of the store's own.
func engineFiles(dir string) (names, temps []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		n := e.Name()
		if sealedFile(n) && n != versionFile {
			names = append(names, n)
		}
		if strings.HasPrefix(n, "."+sealFile+".") || strings.HasPrefix(n, "."+versionFile+".") {
			temps = append(temps, n)
		}
	}
	return names, temps, nil
}

// inspectCrashed checks the files of a store whose writer was killed. What was
// being written at that moment may be incomplete; everything else must be
// whole.
func (st *state) inspectCrashed(dir string, names []string) error {
	tables, err := readManifest(dir)
	if err != nil {
		return err
	}
	found := map[uint64]bool{}
	logs := 0
	for _, name := range names {
		var err error
		switch ext := filepath.Ext(name); {
		case ext == ".sst":
			var id uint64
			if id, err = strconv.ParseUint(strings.TrimSuffix(name, ext), 10, 64); err != nil {
				break
			}
			found[id] = true
			if t, ok := tables[id]; ok {
				err = inspectTable(filepath.Join(dir, name), id, t)
			}
		case ext == ".mem" || ext == ".vlog":
			var empty bool
			empty, err = inspectLog(filepath.Join(dir, name), ext == ".mem")
			if empty {
				st.emptyLogs = append(st.emptyLogs, name)
			}
			if ext == ".mem" {
				logs++
			}
		case name == "KEYREGISTRY":
			err = inspectKeys(filepath.Join(dir, name))
		}
		if err != nil {
			return corrupt(dir, name, err)
		}
	}
	return compareTables(dir, tables, found, logs)
}

// compareTables finds tables that are missing, and tables too many that no
// crash explains: one being built when the writer was killed has its rows in
// a log, or in the tables it was to replace.
func compareTables(dir string, tables map[uint64]badger.TableManifest, found map[uint64]bool, logs int) error {
	for id := range tables {
		if !found[id] {
			return corrupt(dir, fmt.Sprintf("%06d.sst", id), errors.New("the file is missing"))
		}
	}
	if logs > 0 {
		return nil
	}
	for id := range found {
		if _, ok := tables[id]; !ok {
			return corrupt(dir, badger.ManifestFilename, fmt.Errorf("it does not name %06d.sst", id))
		}
	}
	return nil
}

func readManifest(dir string) (map[uint64]badger.TableManifest, error) {
	f, err := os.Open(filepath.Join(dir, badger.ManifestFilename))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, corrupt(dir, badger.ManifestFilename, errors.New("the file is missing"))
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, _, err := badger.ReplayManifestFile(f, engineMagic, badger.DefaultOptions(dir).WithLogger(nil))
	if err != nil {
		return nil, corrupt(dir, badger.ManifestFilename, err)
	}
	return m.Tables, nil
}
