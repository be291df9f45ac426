package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/profiler/store"
)

// programDigest is the content hash of this program: another build may simulate
// otherwise.
func programDigest() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("sweep: %w", err)
	}
	h := sha256.New()
	if err := hashFile(h, path); err != nil {
		return "", fmt.Errorf("sweep: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func hashFile(h hash.Hash, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(h, f)
	return err
}

// worldsDigest is the content hash of what truths and beliefs of these names are
// made from: the file or directory that stands behind the colon, else all that
// is stored and fitted. Durations are in the jobs.
func worldsDigest(c *cli.Context, names ...string) (string, error) {
	h := sha256.New()
	stored := false
	for _, name := range names {
		_, arg, _ := strings.Cut(name, ":")
		switch _, err := os.Stat(arg); {
		case name == "duration" || strings.HasPrefix(name, "duration:"):
		case arg != "" && err == nil:
			if err := hashTree(h, arg); err != nil {
				return "", fmt.Errorf("sweep: %w", err)
			}
		default:
			stored = true
		}
	}
	if stored {
		if err := hashData(c, h); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// filesDigest returns a word of the content of every file a policy reads.
func filesDigest(paths []string) ([]string, error) {
	var out []string
	for _, path := range paths {
		h := sha256.New()
		if err := hashFile(h, path); err != nil {
			return nil, fmt.Errorf("sweep: %w", err)
		}
		out = append(out, path+"="+hex.EncodeToString(h.Sum(nil)))
	}
	return out, nil
}

// hashTree hashes a file, or every file below a directory with its name; root may
// be a link to either.
func hashTree(h hash.Hash, root string) error {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		fmt.Fprintf(h, "%q\n", strings.TrimPrefix(path, root))
		return hashFile(h, path)
	})
}

// hashData hashes the stored measurements and the cards of fitted models,
// whatever their order.
func hashData(c *cli.Context, h hash.Hash) error {
	rows, err := storedRows(c, store.Filter{})
	if err != nil {
		return err
	}
	reg, err := openRegistry(c)
	if err != nil {
		return err
	}
	cards, err := reg.List()
	if err != nil {
		return err
	}
	var lines []string
	add := func(v any) {
		b, e := json.Marshal(v)
		if e != nil && err == nil {
			err = fmt.Errorf("sweep: %w", e)
		}
		sum := sha256.Sum256(b)
		lines = append(lines, string(sum[:]))
	}
	for i := range rows {
		add(&rows[i])
	}
	for i := range cards {
		add(&cards[i])
	}
	slices.Sort(lines)
	for _, l := range lines {
		_, _ = io.WriteString(h, l) // a hash never fails
	}
	return err
}
