package snapshot

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/profiler/store"
)

// An object of snapshots is a zip archive, followed by the SHA-256 of it (32 bytes). The archive has
//
//	header.json     Header
//	rows            a backup of package store where Header.Full, else its changes
//	models/NAME     files of package registry: all, or those that changed

// Header is what an object of snapshots says of itself.
type Header struct {
	Format      string            `json:"format"`  // objectFormat
	Version     int               `json:"version"` // objectVersion
	Term        int64             `json:"term"`
	Number      int64             `json:"number"`
	Full        bool              `json:"full"`
	Writer      string            `json:"writer"`  // address
	Release     string            `json:"release"` // of pacer that wrote it
	At          time.Time         `json:"at"`
	StoreFormat int               `json:"store_format"` // store.FormatVersion of the writer
	Store       uint64            `json:"store"`        // store.DB.Version of the writer, after it
	Models      map[string]string `json:"models"`       // SHA-256 of the file of each model after it, by name
}

const (
	objectFormat  = "pacer snapshot"
	objectVersion = 1

	headerFile = "header.json"
	rowsFile   = "rows"
	modelsDir  = "models/"

	maxHeader = 16 << 20 // bytes
	maxModel  = 64 << 20
)

// ErrRelease means that another release of pacer wrote an object, in a format that this one does not read.
var ErrRelease = errors.New("written by another release")

// ErrDamaged means that an object is truncated, or has other bytes than were written.
var ErrDamaged = errors.New("object damaged")

// place is the number of an object within its term.
type place struct{ term, number int64 }

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.term, q.term), cmp.Compare(p.number, q.number))
}

const snapshotDir = "snapshots/"

func (p place) full() string { return fmt.Sprintf("%s%012d-%012d.full", snapshotDir, p.term, p.number) }
func (p place) changes() string {
	return fmt.Sprintf("%s%012d-%012d.changes", snapshotDir, p.term, p.number)
}

// parsePlace returns the place in the name of an object; ok is false if it is no name of a snapshot.
func parsePlace(name string) (p place, full, ok bool) {
	base, kind, _ := strings.Cut(path.Base(name), ".")
	term, number, found := strings.Cut(base, "-")
	var errs [2]error
	p.term, errs[0] = strconv.ParseInt(term, 10, 64)
	p.number, errs[1] = strconv.ParseInt(number, 10, 64)
	full = kind == "full"
	return p, full, found && errors.Join(errs[:]...) == nil && (name == p.full() || name == p.changes())
}

// encode returns the object of h, rows that write gives, and models.
func encode(h Header, rows func(io.Writer) error, models map[string][]byte) ([]byte, error) {
	h.Format, h.Version = objectFormat, objectVersion
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	add := func(name string, write func(io.Writer) error) error {
		w, err := z.Create(name)
		if err != nil {
			return err
		}
		return write(w)
	}
	err := add(headerFile, func(w io.Writer) error { return json.NewEncoder(w).Encode(h) })
	if err == nil {
		err = add(rowsFile, rows)
	}
	for _, name := range slices.Sorted(maps.Keys(models)) {
		if err == nil {
			err = add(modelsDir+name, func(w io.Writer) error { _, err := w.Write(models[name]); return err })
		}
	}
	if err = errors.Join(err, z.Close()); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	sum := sha256.Sum256(out.Bytes())
	return append(out.Bytes(), sum[:]...), nil
}

// decoded is a whole object.
type decoded struct {
	Header
	rows   *zip.File
	models map[string][]byte
}

// decode checks and opens an object. Errors wrap ErrDamaged or ErrRelease.
func decode(content []byte, p place, full bool) (d decoded, err error) {
	defer func() {
		if err != nil && !errors.Is(err, ErrRelease) {
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}()
	n := len(content) - sha256.Size
	if n < 0 {
		return d, fmt.Errorf("%d bytes are too few", len(content))
	}
	if sum := sha256.Sum256(content[:n]); !bytes.Equal(sum[:], content[n:]) {
		return d, errors.New("checksum mismatch")
	}
	z, err := zip.NewReader(bytes.NewReader(content[:n]), int64(n))
	if err != nil {
		return d, err
	}
	d.models = map[string][]byte{}
	for _, f := range z.File {
		switch {
		case f.Name == headerFile:
			text, err := readFile(f, maxHeader)
			if err == nil {
				err = json.Unmarshal(text, &d.Header)
			}
			if err != nil {
				return d, err
			}
		case f.Name == rowsFile:
			d.rows = f
		case strings.HasPrefix(f.Name, modelsDir):
			if d.models[strings.TrimPrefix(f.Name, modelsDir)], err = readFile(f, maxModel); err != nil {
				return d, err
			}
		}
	}
	return d, d.check(p, full)
}

// check compares the header with the name of the object.
func (d *decoded) check(p place, full bool) error {
	switch {
	case d.Format != objectFormat:
		return fmt.Errorf("format %q, want %q", d.Format, objectFormat)
	case d.Version > objectVersion:
		return fmt.Errorf("version %d of pacer %s, this one reads %d: upgrade it: %w", d.Version, d.Release, objectVersion, ErrRelease)
	case d.Version != objectVersion:
		return fmt.Errorf("version %d, want %d", d.Version, objectVersion)
	case d.StoreFormat > store.FormatVersion:
		return fmt.Errorf("rows of format %d of pacer %s, this one reads %d: upgrade it: %w", d.StoreFormat, d.Release, store.FormatVersion, ErrRelease)
	case d.StoreFormat < store.OldestCopy:
		return fmt.Errorf("rows of format %d of pacer %s, this one reads %d and later: upgrade the writer: %w", d.StoreFormat, d.Release, store.OldestCopy, ErrRelease)
	case place{d.Term, d.Number} != p || d.Full != full:
		return fmt.Errorf("it says that it is %d-%d, full %v", d.Term, d.Number, d.Full)
	case d.rows == nil:
		return errors.New("it has no rows")
	}
	return nil
}

func readFile(f *zip.File, most int64) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if int64(len(b)) > most {
		err = fmt.Errorf("%s has more than %d bytes", f.Name, most)
	}
	return b, errors.Join(err, r.Close())
}

// sums returns the SHA-256 of files by name.
func sums(files map[string][]byte) map[string]string {
	out := map[string]string{}
	for name, b := range files {
		out[name] = registry.Sum(b)
	}
	return out
}
