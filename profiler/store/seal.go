package store

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
)

// The seal lists the store's files with sizes and checksums. It is written when the store is closed and removed before
// it is opened for writing. It also detects damage that looks like the effect of a crash, such as a short MANIFEST.
const sealFile = "SEAL"

const sealHeader = "pacer measurement store, sealed\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealedFile reports whether the seal covers a file.
func sealedFile(name string) bool {
	switch filepath.Ext(name) {
	case ".sst", ".vlog", ".mem":
		return true
	}
	return slices.Contains([]string{versionFile, "MANIFEST", "KEYREGISTRY", "DISCARD"}, name)
}

// sealLine is the entry of one file in the seal.
type sealLine struct {
	name string
	size int64
	crc  uint32
}

func (l sealLine) String() string { return fmt.Sprintf("%08x %d %s\n", l.crc, l.size, l.name) }

// sealLines returns the size and checksum of the covered files of dir, sorted by name.
func sealLines(dir string) ([]sealLine, error) {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return nil, err
	}
	var lines []sealLine
	for _, e := range entries {
		if !sealedFile(e.Name()) {
			continue
		}
		size, crc, err := checksum(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		lines = append(lines, sealLine{e.Name(), size, crc})
	}
	return lines, nil
}

func checksum(path string) (size int64, crc uint32, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	h := crc32.New(castagnoli)
	size, err = io.Copy(h, f)
	return size, h.Sum32(), err
}

func writeSeal(dir string) error {
	lines, err := sealLines(dir)
	if err != nil {
		return err
	}
	b := []byte(sealHeader)
	for _, l := range lines {
		b = append(b, l.String()...)
	}
	b = fmt.Appendf(b, "%08x\n", crc32.Checksum(b, castagnoli))
	return atomicfile.Write(filepath.Join(dir, sealFile), 0o644, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// checkSeal compares dir with its seal; found is false if there is no seal.
func checkSeal(dir string) (found bool, err error) {
	b, err := os.ReadFile(filepath.Join(dir, sealFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	want, err := parseSeal(b)
	if err != nil {
		return true, corrupt(dir, sealFile, err)
	}
	have, err := sealLines(dir)
	if err != nil {
		return true, err
	}
	return true, compareSeal(dir, want, have)
}

func parseSeal(b []byte) ([]sealLine, error) {
	end := bytes.LastIndexByte(bytes.TrimSuffix(b, []byte("\n")), '\n') + 1
	if !bytes.HasPrefix(b, []byte(sealHeader)) || string(b[end:]) != fmt.Sprintf("%08x\n", crc32.Checksum(b[:end], castagnoli)) {
		return nil, errors.New("checksum mismatch")
	}
	var lines []sealLine
	s := bufio.NewScanner(bytes.NewReader(b[len(sealHeader):end]))
	for s.Scan() {
		var l sealLine
		if _, err := fmt.Sscanf(s.Text(), "%x %d %s", &l.crc, &l.size, &l.name); err != nil {
			return nil, fmt.Errorf("line %q: %w", s.Text(), err)
		}
		lines = append(lines, l)
	}
	return lines, s.Err()
}

func compareSeal(dir string, want, have []sealLine) error {
	byName := map[string]sealLine{}
	for _, l := range have {
		byName[l.name] = l
	}
	for _, w := range want {
		h, ok := byName[w.name]
		delete(byName, w.name)
		switch {
		case !ok:
			return corrupt(dir, w.name, errors.New("the file is missing"))
		case h.size != w.size:
			return corrupt(dir, w.name, fmt.Errorf("the file has %d bytes, %d were written", h.size, w.size))
		case h.crc != w.crc:
			return corrupt(dir, w.name, fmt.Errorf("the file's checksum is %08x, %08x was written", h.crc, w.crc))
		}
	}
	for _, l := range have {
		if _, extra := byName[l.name]; extra {
			return corrupt(dir, l.name, errors.New("the file did not exist when the store was closed"))
		}
	}
	return nil
}

// corrupt returns the error for a damaged file of the store in dir.
func corrupt(dir, file string, why error) error {
	at := dir
	if file != "" {
		at = filepath.Join(dir, file)
	}
	return fmt.Errorf("%s: %w; nothing was changed: restore %s from a copy, or move it away and import again: %w",
		at, why, strings.TrimSuffix(dir, string(filepath.Separator)), ErrCorrupt)
}
