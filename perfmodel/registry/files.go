package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Files returns the files of the models that can be read, by name: what Install of another registry takes. The error
// names the others.
func (r *Registry) Files() (map[string][]byte, error) {
	out := map[string][]byte{}
	names, err := r.fileNames()
	var bad []error
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(r.dir, name))
		if errors.Is(err, fs.ErrNotExist) { // removed since
			continue
		}
		if err == nil {
			_, err = open(b)
		}
		if err != nil {
			bad = append(bad, fmt.Errorf("registry: %s: %w", name, err))
			continue
		}
		out[name] = b
	}
	return out, errors.Join(append(bad, err)...)
}

// Sum identifies the content of a file of Files: its SHA-256, in hexadecimal.
func Sum(file []byte) string {
	h := sha256.Sum256(file)
	return hex.EncodeToString(h[:])
}

// Install makes the models of r those of all, Sums by name. files are those of them that r may lack. It returns the keys
// of the models that changed. If a file is damaged, or r would lack a model, it changes nothing. Each file changes
// completely or not at all.
func (r *Registry) Install(files map[string][]byte, all map[string]string) (changed []spec.Key, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, b := range files {
		e, err := open(b)
		if err == nil && name != filepath.Base(r.path(e.Card.Key, e.Card.Family)) {
			err = fmt.Errorf("it holds %s of %s, which has another name", e.Card.Family, e.Card.Key)
		}
		if err == nil && all[name] != Sum(b) {
			err = fmt.Errorf("SHA-256 %s, want %q", Sum(b), all[name])
		}
		if err != nil {
			return nil, fmt.Errorf("registry: install %s: %w", name, err)
		}
	}
	names, err := r.fileNames()
	if err != nil {
		return nil, err
	}
	here := map[string][]byte{}
	for _, name := range names {
		if here[name], err = os.ReadFile(filepath.Join(r.dir, name)); err != nil {
			return nil, fmt.Errorf("registry: %w", err)
		}
	}
	for name, sum := range all {
		if files[name] == nil && (here[name] == nil || Sum(here[name]) != sum) {
			return nil, fmt.Errorf("registry: install: model %s with SHA-256 %s is missing", name, sum)
		}
	}
	return r.install(files, all, here)
}

// install writes files, and removes those of here that are not in all.
func (r *Registry) install(files map[string][]byte, all map[string]string, here map[string][]byte) (changed []spec.Key, err error) {
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	for name, b := range files {
		if bytes.Equal(here[name], b) {
			continue
		}
		if err := atomicfile.WriteBytes(filepath.Join(r.dir, name), 0o644, b); err != nil {
			return changed, fmt.Errorf("registry: %w", err)
		}
		changed = append(changed, keyOf(b)...)
	}
	for name, b := range here {
		if _, kept := all[name]; kept {
			continue
		}
		if err := os.Remove(filepath.Join(r.dir, name)); err != nil {
			return changed, fmt.Errorf("registry: %w", err)
		}
		changed = append(changed, keyOf(b)...)
	}
	return changed, nil
}

// keyOf returns the key of the model in a file, none of a damaged one.
func keyOf(file []byte) []spec.Key {
	e, err := open(file)
	if err != nil {
		return nil
	}
	return []spec.Key{e.Card.Key}
}

// fileNames returns the names of all files of models.
func (r *Registry) fileNames() (names []string, err error) {
	files, err := os.ReadDir(r.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it does not exist before the first Put
		return nil, fmt.Errorf("registry: %w", err)
	}
	for _, f := range files {
		if !f.IsDir() && filepath.Ext(f.Name()) == extension {
			names = append(names, f.Name())
		}
	}
	return names, nil
}
