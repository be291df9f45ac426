package registry

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ErrNotFound means that the registry has no fitted model for a key and family. It wraps
// perfmodel.ErrNotCovered.
var ErrNotFound = fmt.Errorf("no such fitted model: %w", perfmodel.ErrNotCovered)

// Registry is a directory of fitted models. It is safe for concurrent use, including by several processes:
// files are replaced atomically.
type Registry struct {
	dir string

	mu sync.Mutex // serializes Put in this process
}

// Open returns the registry in dir. If dir does not exist, the first Put creates it.
func Open(dir string) (*Registry, error) {
	if st, err := os.Stat(dir); err == nil && !st.IsDir() {
		return nil, fmt.Errorf("registry: %s is not a directory", dir)
	}
	return &Registry{dir: dir}, nil
}

// Put stores fitted under the card's key and family, replacing an older one. When it returns nil, both are on
// stable storage.
func (r *Registry) Put(card perfmodel.Card, fitted perfmodel.Fitted) error {
	if card.Model == "" || card.Accelerator == "" || card.Family == "" {
		return fmt.Errorf("registry: card of %q, family %q: model, accelerator and family must not be empty", card.Key, card.Family)
	}
	if !utf8.ValidString(card.Model + card.Accelerator + card.Family) {
		return fmt.Errorf("registry: card of %q, family %q: a name is not UTF-8", card.Key, card.Family)
	}
	data, err := fitted.MarshalBinary()
	if err != nil {
		return fmt.Errorf("registry: %s, %s: %w", card.Family, card.Key, err)
	}
	b, err := seal(card, data)
	if err != nil {
		return fmt.Errorf("registry: %s, %s: %w", card.Family, card.Key, err)
	}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	atomicfile.Sweep(r.dir)
	if err := atomicfile.WriteBytes(r.path(card.Key, card.Family), 0o644, b); err != nil {
		return fmt.Errorf("registry: %s, %s: %w", card.Family, card.Key, err)
	}
	return nil
}

// Get returns the model that Put stored for key and familyName; it belongs to the caller. If there is none, the
// error wraps ErrNotFound and names the stored keys.
func (r *Registry) Get(key spec.Key, familyName string) (perfmodel.Fitted, perfmodel.Card, error) {
	path := r.path(key, familyName)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, perfmodel.Card{}, r.notFound(key, familyName)
	}
	if err != nil {
		return nil, perfmodel.Card{}, fmt.Errorf("registry: %w", err)
	}
	e, err := open(b)
	if err == nil && (e.Card.Key != key || e.Card.Family != familyName) {
		err = fmt.Errorf("it holds %s of %s, want %s of %s", e.Card.Family, e.Card.Key, familyName, key)
	}
	if err != nil {
		return nil, perfmodel.Card{}, fmt.Errorf("registry: %s: %w", path, err)
	}
	fam, err := family.Lookup(familyName)
	if err != nil {
		return nil, perfmodel.Card{}, fmt.Errorf("registry: %s: %w", path, err)
	}
	if fam.Load == nil {
		return nil, perfmodel.Card{}, fmt.Errorf("registry: %s: family %s cannot be loaded", path, familyName)
	}
	fitted, err := fam.Load(e.Data)
	if err != nil {
		return nil, perfmodel.Card{}, fmt.Errorf("registry: %s: %w", path, err)
	}
	return fitted, e.Card, nil
}

// Remove deletes the model of a key and family. It is no error if there is none.
func (r *Registry) Remove(key spec.Key, familyName string) error {
	if err := os.Remove(r.path(key, familyName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("registry: %w", err)
	}
	return nil
}

func (r *Registry) notFound(key spec.Key, familyName string) error {
	cards, _ := r.List()
	known := knownKeys(cards, familyName)
	if len(known) == 0 {
		return fmt.Errorf("registry: %s of %s: no %s model is stored: %w", familyName, key, familyName, ErrNotFound)
	}
	return fmt.Errorf("registry: %s of %s: stored keys are %s: %w", familyName, key, strings.Join(known, ", "), ErrNotFound)
}

func knownKeys(cards []perfmodel.Card, familyName string) []string {
	var out []string
	for _, c := range cards {
		if c.Family == familyName {
			out = append(out, c.Key.String())
		}
	}
	return out
}

// List returns the cards of all readable files, ordered by model, accelerator and family, and an error that
// names every unreadable file.
func (r *Registry) List() ([]perfmodel.Card, error) {
	names, err := r.fileNames()
	if err != nil {
		return nil, err
	}
	var cards []perfmodel.Card
	var bad []error
	for _, name := range names {
		path := filepath.Join(r.dir, name)
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // removed since ReadDir
			continue
		}
		var e envelope
		if err == nil {
			e, err = open(b)
		}
		if err != nil {
			bad = append(bad, fmt.Errorf("registry: %s: %w", path, err))
			continue
		}
		cards = append(cards, e.Card)
	}
	slices.SortFunc(cards, func(a, b perfmodel.Card) int {
		return cmp.Or(perfmodel.CompareKeys(a.Key, b.Key), strings.Compare(a.Family, b.Family))
	})
	return cards, errors.Join(bad...)
}

// Predictor returns one Predictor over all models of a family that are stored now. It selects the model by the
// Config's key, else by the canonical form of the key's model. For other keys the family answers as before a
// fit; if it predicts nothing then, the error wraps perfmodel.ErrNotCovered and names the stored keys. A model
// that cannot be read causes an error only for its own key. If the family needs a fit and has no model,
// Predictor returns ErrNotFound.
func (r *Registry) Predictor(familyName string, canonical func(model string) string) (perfmodel.Predictor, error) {
	fam, err := family.Lookup(familyName)
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	cards, damaged := r.List()
	p := &predictor{family: familyName, unfitted: fam.Unfitted, fitted: map[spec.Key]perfmodel.Fitted{}, broken: map[spec.Key]error{}, damaged: damaged,
		canonical: canonical, names: map[spec.Key]string{}}
	p.known = strings.Join(knownKeys(cards, familyName), ", ")
	switch {
	case p.known != "":
	case p.unfitted != nil && damaged == nil:
		return p.unfitted, nil
	case p.unfitted == nil:
		return nil, errors.Join(fmt.Errorf("registry: no %s model is stored: %w", familyName, ErrNotFound), damaged)
	}
	readable := map[string]bool{}
	for _, c := range cards {
		readable[r.path(c.Key, c.Family)] = true
		if c.Family != familyName {
			continue
		}
		p.names[spec.Key{Model: canonical(c.Model), Accelerator: c.Accelerator}] = c.Model
		fitted, _, err := r.Get(c.Key, familyName)
		if err != nil {
			p.broken[c.Key] = err
			continue
		}
		p.fitted[c.Key] = fitted
	}
	if damaged != nil {
		p.lost = func(k spec.Key) bool {
			path := r.path(k, familyName)
			_, err := os.Stat(path)
			return err == nil && !readable[path]
		}
	}
	return p, nil
}

// predictor selects the model by a Config's key. It is immutable.
type predictor struct {
	family   string
	known    string // the stored keys, for messages
	fitted   map[spec.Key]perfmodel.Fitted
	broken   map[spec.Key]error
	unfitted perfmodel.Predictor // for other keys, nil if the family predicts nothing before a fit
	damaged  error               // of files with an unreadable card
	lost     func(spec.Key) bool // whether the card of a key is unreadable; nil = none is

	canonical func(model string) string
	names     map[spec.Key]string // of models, as stored, by key with the canonical form
}

// find returns the model for c, nil if there is none, and gives c the model's stored name.
func (p *predictor) find(c *spec.Config) perfmodel.Predictor {
	if f, ok := p.fitted[c.Key()]; ok {
		return f
	}
	if name, ok := p.names[spec.Key{Model: p.canonical(c.Model.Name), Accelerator: c.Accelerator.Name}]; ok {
		c.Model.Name = name
		if f, ok := p.fitted[c.Key()]; ok {
			return f
		}
		return nil // damaged
	}
	if p.lost != nil && p.lost(c.Key()) {
		return nil
	}
	return p.unfitted
}

// Predict implements perfmodel.Predictor.
func (p *predictor) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	if f := p.find(&c); f != nil {
		return f.Predict(ctx, c)
	}
	key := c.Key()
	if err, ok := p.broken[key]; ok {
		return spec.Prediction{}, err
	}
	err := fmt.Errorf("registry: no %s model for %s, stored keys are %s: %w", p.family, key, p.known, perfmodel.ErrNotCovered)
	return spec.Prediction{}, errors.Join(err, p.damaged)
}

// Memory returns the memory estimator of the model for c's key. The error wraps perfmodel.ErrNotCovered if
// there is no such model, or it has no estimator.
func (p *predictor) Memory(c spec.Config) (memory.Estimator, error) {
	m, ok := p.find(&c).(memory.Predictor)
	if !ok {
		return memory.Estimator{}, fmt.Errorf("registry: no %s model that estimates memory is fitted to %s: %w", p.family, c.Key(), perfmodel.ErrNotCovered)
	}
	return m.Memory(c)
}

const extension = ".model"

// path returns the file of a key and family. The name is readable and valid on every file system; a hash
// distinguishes keys with the same readable part.
func (r *Registry) path(key spec.Key, familyName string) string {
	h := sha256.Sum256([]byte(familyName + "\x00" + key.Model + "\x00" + key.Accelerator))
	name := slug(familyName) + "_" + slug(key.Model) + "_" + slug(key.Accelerator) + "_" + hex.EncodeToString(h[:6])
	return filepath.Join(r.dir, name+extension)
}

// slug returns the first 40 bytes of s, with everything but letters, digits, dashes and dots replaced by
// dashes.
func slug(s string) string {
	b := make([]byte, 0, 40)
	for i := 0; i < len(s) && len(b) < cap(b); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-':
			b = append(b, c)
		default:
			b = append(b, '-')
		}
	}
	return string(b)
}
