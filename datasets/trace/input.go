package trace

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// input is a trace being read: a file, or a directory of tables.
type input struct {
	ctx  context.Context
	root fs.FS
	path string // in root
	name string // in errors

	format *formatReader
	trace  string        // the trace to read from a file with several, "" = the only one
	reader *bufio.Reader // nil for a directory
	closer io.Closer
}

// peeked is how many bytes of a file are inspected to identify it.
const peeked = 64 << 10

// open opens the trace and detects its format, unless it is given.
func (in *input) open(format string) error {
	if format != "" {
		name, trace, named := strings.Cut(format, "=")
		var err error
		if in.format, err = lookupFormat(name); err != nil {
			return err
		}
		if in.trace = trace; named && (!in.format.several || trace == "") {
			return fmt.Errorf("datasets: workload format %s: a file of format %s holds one trace; only dl2=CONFIG/TRACE names one of several", format, name)
		}
	}
	err := in.openFile()
	if err == nil && in.format == nil {
		err = in.guess()
	}
	if err == nil && in.format.tables != (in.reader == nil) {
		err = fmt.Errorf("datasets: %s: a trace of format %s is a %s", in.name, in.format.name, map[bool]string{true: "directory of tables", false: "file"}[in.format.tables])
	}
	if err != nil {
		in.close()
	}
	return err
}

// openFile opens a file; a directory stays without a reader.
func (in *input) openFile() error {
	if info, err := fs.Stat(in.root, in.path); err == nil && info.IsDir() {
		return nil
	}
	f, err := in.root.Open(in.path)
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			err = at.Err // the error has the whole path
		}
		return fmt.Errorf("datasets: %s: %w", in.name, err)
	}
	in.closer = f
	if in.reader, err = unpack(f, memberNames(in.format)...); err != nil {
		return fmt.Errorf("datasets: %s: %w", in.name, err)
	}
	return nil
}

func (in *input) close() {
	if in.closer != nil {
		in.closer.Close() // opened for reading
	}
}

func (in *input) jobs() iter.Seq2[spec.Job, error] { return in.format.jobs(in) }

// guess detects the format by the first line, or by the files of a directory.
func (in *input) guess() error {
	var name string
	if in.reader == nil {
		for _, f := range formatReaders {
			if f.tables && len(tableFiles(in.root, in.path, f.member)) > 0 {
				name = f.name
			}
		}
		if name == "" {
			return fmt.Errorf("datasets: %s: the directory holds no table of a known workload format, such as %s", in.name, "pai_job_table.csv")
		}
	} else {
		data, err := in.reader.Peek(peeked)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("datasets: %s: %w", in.name, err)
		}
		if len(bytes.TrimSpace(data)) == 0 {
			return fmt.Errorf("datasets: %s: %w", in.name, table.ErrEmpty)
		}
		if name = guessFormat(data); name == "" {
			return fmt.Errorf("datasets: %s: its first line is of no known workload format; name one of: %s",
				in.name, strings.Join(FormatNames(), ", "))
		}
	}
	var err error
	in.format, err = lookupFormat(name)
	return err
}

// tableFiles finds the table of a name in a directory or its folder data, in any of the published forms.
func tableFiles(root fs.FS, dir, name string) []string {
	var out []string
	for _, sub := range []string{"", "data"} {
		for _, ext := range []string{".csv", ".csv.gz", ".tar.gz"} {
			file := path.Join(dir, sub, name+ext)
			if info, err := fs.Stat(root, file); err == nil && !info.IsDir() {
				out = append(out, file)
			}
		}
	}
	return out
}

// memberNames are the files to look for in an archive: of the format, or of any format if it is
// unknown.
func memberNames(f *formatReader) []string {
	if f != nil && f.member != "" {
		return []string{f.member}
	}
	var out []string
	for _, g := range formatReaders {
		if f == nil && g.member != "" && !g.tables {
			out = append(out, g.member)
		}
	}
	return out
}

// unpack returns a reader of the content of r. Gzip is unpacked. Of a tar archive it reads the
// first file with one of the names, whatever the extension, or without names the first file.
func unpack(r io.Reader, names ...string) (*bufio.Reader, error) {
	br := bufio.NewReaderSize(r, peeked)
	if head, _ := br.Peek(2); string(head) == "\x1f\x8b" {
		z, err := gzip.NewReader(br)
		if err != nil {
			return nil, err
		}
		br = bufio.NewReaderSize(z, peeked)
	}
	// the magic of POSIX.1-1988 and of GNU tar
	const at, magic = 257, "ustar"
	if head, _ := br.Peek(at + len(magic)); len(head) < at || string(head[at:]) != magic {
		return br, nil
	}
	t := tar.NewReader(br)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("the archive holds no file %s", strings.Join(names, " or "))
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeReg && (len(names) == 0 || slices.Contains(names, table.Stem(h.Name))) {
			return bufio.NewReaderSize(t, peeked), nil
		}
	}
}
