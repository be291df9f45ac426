package worker

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
	"github.com/pacer-ml/pacer/perfmodel/tempdir"
)

//go:embed pacer_worker/*.py
var program embed.FS

const programDir = "pacer_worker"

// Extract writes the program below dir and returns the directory to give to python3. An empty dir means the
// user's cache directory, or else a temporary directory, which a later process removes. Each version of the
// program has a directory named by its content, and correct files are not rewritten. So several processes may
// extract at once, and files that a crash left incomplete are repaired.
func Extract(dir string) (string, error) {
	files, hash, err := read(program)
	if err != nil {
		return "", err
	}
	if dir != "" {
		return extract(dir, files, hash)
	}
	if cache, err := os.UserCacheDir(); err == nil {
		if out, err := extract(filepath.Join(cache, "pacer"), files, hash); err == nil {
			return out, nil
		}
	}
	// Private: the name is new and only this user can write to it.
	temporary, err := tempdir.New("", "pacer-worker-")
	if err != nil {
		return "", fmt.Errorf("worker: %w; set XDG_CACHE_HOME or TMPDIR to a directory that can be written", err)
	}
	tempDirs.Lock()
	defer tempDirs.Unlock()
	tempDirs.dirs = append(tempDirs.dirs, temporary)
	return extract(temporary.Path(""), files, hash)
}

// tempDirs are the temporary directories of this process, used until it ends. The next process that needs one
// removes them.
var tempDirs struct {
	sync.Mutex
	dirs []*tempdir.Dir
}

// read returns the files of the program by name, and a hash of all of them.
func read(from fs.FS) (files map[string][]byte, hash string, err error) {
	entries, err := fs.ReadDir(from, programDir) // sorted
	if err != nil {
		return nil, "", fmt.Errorf("worker: %w", err)
	}
	files = map[string][]byte{}
	sum := sha256.New()
	for _, e := range entries {
		text, err := fs.ReadFile(from, path.Join(programDir, e.Name()))
		if err != nil {
			return nil, "", fmt.Errorf("worker: %w", err)
		}
		files[e.Name()] = text
		fmt.Fprintf(sum, "%s %d\n%s", e.Name(), len(text), text)
	}
	return files, fmt.Sprintf("%x", sum.Sum(nil)[:8]), nil
}

func extract(dir string, files map[string][]byte, hash string) (string, error) {
	out := filepath.Join(dir, "worker-"+hash, programDir)
	if err := os.MkdirAll(out, 0o700); err != nil {
		return "", fmt.Errorf("worker: %w", err)
	}
	for name, text := range files {
		if err := writeFile(filepath.Join(out, name), text); err != nil {
			return "", fmt.Errorf("worker: %w", err)
		}
	}
	return out, nil
}

// writeFile makes the file contain text. Other processes see it completely or not at all.
func writeFile(file string, text []byte) error {
	if have, err := os.ReadFile(file); err == nil && bytes.Equal(have, text) {
		return nil
	}
	return atomicfile.WriteBytes(file, 0o600, text)
}
