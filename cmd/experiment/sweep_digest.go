package experiment

import (
	"context"
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
	"sync"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/profiler/store"
)

// programDigest returns the content hash of this program. Another build may give other
// results.
var programDigest = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	if err := hashFile(h, path); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
})

func hashFile(h hash.Hash, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(h, f)
	return err
}

// sourcesDigest is the content hash of the input of the sources of these names: the file
// or directory behind the colon, else all stored measurements and fitted models. A
// source of durations has no input but the jobs.
func (d Data) sourcesDigest(ctx context.Context, names ...string) (string, error) {
	h := sha256.New()
	stored := false
	for _, name := range names {
		_, arg, _ := strings.Cut(name, ":")
		switch _, err := os.Stat(arg); {
		case name == "duration" || strings.HasPrefix(name, "duration:"):
		case arg != "" && err == nil:
			if err := hashTree(h, arg); err != nil {
				return "", err
			}
		default:
			stored = true
		}
	}
	if stored {
		if err := d.hash(ctx, h); err != nil {
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
			return nil, err
		}
		out = append(out, path+"="+hex.EncodeToString(h.Sum(nil)))
	}
	return out, nil
}

// hashTree hashes a file, or every file below a directory with its name. root may be a
// link to either.
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

// hash hashes the stored measurements and the cards of fitted models, whatever their
// order.
func (d Data) hash(ctx context.Context, h hash.Hash) error {
	rows, err := d.rows(ctx, store.Filter{})
	if err != nil {
		return err
	}
	cards, err := d.cards()
	if err != nil {
		return err
	}
	var lines []string
	add := func(v any) {
		b, e := json.Marshal(v)
		if e != nil && err == nil {
			err = e
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

// cards are those of the fitted models.
func (d Data) cards() ([]perfmodel.Card, error) {
	if d.Fitted == nil {
		return nil, nil
	}
	reg, err := d.Fitted()
	if err != nil {
		return nil, err
	}
	return reg.List()
}
