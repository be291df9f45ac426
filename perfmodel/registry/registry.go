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
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/scratch"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/wholefile"
)

// ErrNotFound means no fitted model of that key and family is kept. It wraps
// perfmodel.ErrNotCovered.
var ErrNotFound = fmt.Errorf("no such fitted model: %w", perfmodel.ErrNotCovered)

// Registry is a directory of fitted models. It is safe for concurrent use, by
// several processes too: a file is replaced whole or not at all.
type Registry struct {
	dir string

	mu sync.Mutex // one Put at a time in this process
}

// Open returns the registry in dir, which the first Put makes if it is missing.
func Open(dir string) (*Registry, error) {
	if st, err := os.Stat(dir); err == nil && !st.IsDir() {
		return nil, fmt.Errorf("registry: %s is not a directory", dir)
	}
	return &Registry{dir: dir}, nil
}

// Put keeps fitted under the card's key and family, in place of an older one.
// When it returns nil both are on stable storage.
func (r *Registry) Put(card perfmodel.Card, fitted perfmodel.Fitted) error {
	if card.Model == "" || card.Accelerator == "" || card.Family == "" {
		return fmt.Errorf("registry: card of %q, family %q: model, accelerator and family must be named", card.Key, card.Family)
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
	if err := replace(r.path(card.Key, card.Family), b); err != nil {
		return fmt.Errorf("registry: %s, %s: %w", card.Family, card.Key, err)
	}
	return nil
}

// Get returns what Put kept for key and familyName. The error wraps ErrNotFound
// and names the keys there are when there is none.
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
		err = fmt.Errorf("holds %s of %s, not %s of %s", e.Card.Family, e.Card.Key, familyName, key)
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

func (r *Registry) notFound(key spec.Key, familyName string) error {
	cards, _ := r.List()
	known := knownKeys(cards, familyName)
	if len(known) == 0 {
		return fmt.Errorf("registry: %s of %s: nothing is fitted with %s: %w", familyName, key, familyName, ErrNotFound)
	}
	return fmt.Errorf("registry: %s of %s: fitted are %s: %w", familyName, key, strings.Join(known, ", "), ErrNotFound)
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

// List returns the cards of all readable files, by model, accelerator and
// family, and an error naming every file that is not.
func (r *Registry) List() ([]perfmodel.Card, error) {
	files, err := os.ReadDir(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing was put yet
	}
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	var cards []perfmodel.Card
	var bad []error
	for _, f := range files {
		if f.IsDir() || filepath.Ext(f.Name()) != extension {
			continue
		}
		path := filepath.Join(r.dir, f.Name())
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // removed since
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

// Predictor returns one Predictor for everything fitted with a family now: it
// asks the model fitted to the Config's key, and returns an error wrapping
// perfmodel.ErrNotCovered, naming the keys there are, for others. A model that
// cannot be read is an error when its key is asked for, and not before. With
// nothing fitted, Predictor itself returns ErrNotFound.
func (r *Registry) Predictor(familyName string) (perfmodel.Predictor, error) {
	if _, err := family.Lookup(familyName); err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	cards, damaged := r.List()
	p := &predictor{family: familyName, fitted: map[spec.Key]perfmodel.Fitted{}, broken: map[spec.Key]error{}, damaged: damaged}
	p.known = strings.Join(knownKeys(cards, familyName), ", ")
	if p.known == "" {
		return nil, errors.Join(fmt.Errorf("registry: nothing is fitted with %s: %w", familyName, ErrNotFound), damaged)
	}
	for _, c := range cards {
		if c.Family != familyName {
			continue
		}
		fitted, _, err := r.Get(c.Key, familyName)
		if err != nil {
			p.broken[c.Key] = err
			continue
		}
		p.fitted[c.Key] = fitted
	}
	return p, nil
}

// predictor dispatches on a Config's key. It does not change once made.
type predictor struct {
	family  string
	known   string // keys, for messages
	fitted  map[spec.Key]perfmodel.Fitted
	broken  map[spec.Key]error
	damaged error // files whose key is not known
}

func (p *predictor) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	key := c.Key()
	if f, ok := p.fitted[key]; ok {
		return f.Predict(ctx, c)
	}
	if err, ok := p.broken[key]; ok {
		return spec.Prediction{}, err
	}
	err := fmt.Errorf("registry: %s is not fitted with %s, fitted are %s: %w", key, p.family, p.known, perfmodel.ErrNotCovered)
	return spec.Prediction{}, errors.Join(err, p.damaged)
}

// Memory returns what the model of c's key estimates memory with. The error
// wraps perfmodel.ErrNotCovered where there is none, or it estimates none.
func (p *predictor) Memory(c spec.Config) (memory.Estimator, error) {
	m, ok := p.fitted[c.Key()].(memory.Predictor)
	if !ok {
		return memory.Estimator{}, fmt.Errorf("registry: no %s model that estimates memory is fitted to %s: %w", p.family, c.Key(), perfmodel.ErrNotCovered)
	}
	return m.Memory(c)
}

const extension = ".model"

// path returns the file of a key and family. Names are readable, safe on any
// file system, and differ for different keys by their hash.
func (r *Registry) path(key spec.Key, familyName string) string {
	h := sha256.Sum256([]byte(familyName + "\x00" + key.Model + "\x00" + key.Accelerator))
	name := slug(familyName) + "_" + slug(key.Model) + "_" + slug(key.Accelerator) + "_" + hex.EncodeToString(h[:6])
	return filepath.Join(r.dir, name+extension)
}

// slug returns at most 40 letters, digits, dashes and dots of s.
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

// unfinished is how directories with files being written begin.
const unfinished = "tmp-"

// replace writes b to path so that a reader, or a crash, finds the old content
// or the new, never a part. What a crash left of earlier ones it removes.
func replace(path string, b []byte) error {
	d, err := scratch.New(filepath.Dir(path), unfinished)
	if err != nil {
		return err
	}
	defer d.Remove()
	f := d.Path("model")
	if err := wholefile.WriteBytes(f, 0o644, b); err != nil {
		return err
	}
	if err := os.Rename(f, path); err != nil {
		return err
	}
	return wholefile.SyncDir(filepath.Dir(path))
}
