package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// config returns an invented model on dp devices of one node.
func config(key spec.Key, dp int) spec.Config {
	return spec.Config{
		Model:       spec.Model{Name: key.Model, Kind: spec.Opaque, ParamCount: 1e8, FLOPsPerSample: 1e10},
		Accelerator: spec.Accelerator{Name: key.Accelerator, FP32: 1e13, MemBytes: 16 << 30, MemBps: 5e11},
		Plan:        spec.Plan{DP: dp, MicroBatch: 64 / dp}.Normal(), Shape: spec.NewShape(dp),
	}
}

// fit fits rubick to three rows with times proportional to sec.
func fit(t testing.TB, key spec.Key, sec float64) (perfmodel.Card, perfmodel.Fitted) {
	t.Helper()
	fam, err := family.Lookup("rubick")
	if err != nil {
		t.Fatal(err)
	}
	var rows []spec.Measurement
	for _, dp := range []int{1, 2, 4} {
		rows = append(rows, spec.Measurement{Config: config(key, dp), Outcome: spec.OK, Source: "test",
			StepSec: []float64{sec * (0.1 + 1/float64(dp))}})
	}
	fitted, card, err := perfmodel.FitKey(t.Context(), fam, rows, perfmodel.FitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return card, fitted
}

func newRegistry(t testing.TB) *Registry {
	t.Helper()
	r, err := Open(filepath.Join(t.TempDir(), "deep", "models"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func put(t testing.TB, r *Registry, key spec.Key, sec float64) (perfmodel.Card, perfmodel.Fitted) {
	t.Helper()
	card, fitted := fit(t, key, sec)
	if err := r.Put(card, fitted); err != nil {
		t.Fatal(err)
	}
	return card, fitted
}

// keys are names that are not valid file names; the second and third differ in case only.
var keys = []spec.Key{
	{Model: "../../etc/passwd", Accelerator: "a\x00b"},
	{Model: "Llama3-8B", Accelerator: "H100"},
	{Model: "llama3-8b", Accelerator: "H100"},
	{Model: "模型 🦙", Accelerator: strings.Repeat("long", 200)},
	{Model: "a", Accelerator: "b c"},
	{Model: "a b", Accelerator: "c"},
}

func TestGetReturnsWhatWasPut(t *testing.T) {
	r := newRegistry(t)
	want := map[spec.Key]string{}
	for i, k := range keys {
		card, fitted := put(t, r, k, float64(i+1))
		p, err := fitted.Predict(t.Context(), config(k, 2))
		if err != nil {
			t.Fatal(err)
		}
		want[k] = fmt.Sprint(p, asJSON(card))
	}
	for _, k := range keys {
		fitted, card, err := r.Get(k, "rubick")
		if err != nil {
			t.Fatal(err)
		}
		p, err := fitted.Predict(t.Context(), config(k, 2))
		if got := fmt.Sprint(p, asJSON(card)); err != nil || got != want[k] {
			t.Errorf("%s: %s, %v; put %s", k, got, err, want[k])
		}
	}
	cards, err := r.List()
	if err != nil || len(cards) != len(keys) {
		t.Fatalf("listed %d cards, %v", len(cards), err)
	}
	for i := 1; i < len(cards); i++ {
		if perfmodel.CompareKeys(cards[i-1].Key, cards[i].Key) >= 0 {
			t.Errorf("%s is listed before %s", cards[i-1].Key, cards[i].Key)
		}
	}
	inside, _ := filepath.Glob(filepath.Join(r.dir, "*"+extension))
	if len(inside) != len(keys) {
		t.Errorf("%d files in the registry for %d keys", len(inside), len(keys))
	}
}

func asJSON(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func TestPutReplaces(t *testing.T) {
	r := newRegistry(t)
	put(t, r, keys[1], 1)
	put(t, r, keys[1], 100)
	fitted, _, err := r.Get(keys[1], "rubick")
	if err != nil {
		t.Fatal(err)
	}
	p, err := fitted.Predict(t.Context(), config(keys[1], 1))
	if sec, _, _ := p.StepSec(64); err != nil || sec < 50 {
		t.Errorf("predicts %g s, %v; the model put last says about 110", sec, err)
	}
	files, _ := os.ReadDir(r.dir)
	if len(files) != 1 {
		t.Errorf("%d files are left, want 1", len(files))
	}
}

func TestGetNamesWhatThereIs(t *testing.T) {
	r := newRegistry(t)
	_, _, err := r.Get(keys[1], "rubick")
	if !errors.Is(err, ErrNotFound) || !errors.Is(err, perfmodel.ErrNotCovered) || !strings.Contains(err.Error(), "model is stored") {
		t.Errorf("empty registry: %v", err)
	}
	put(t, r, keys[4], 1)
	if _, _, err = r.Get(keys[1], "rubick"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "a on b c") {
		t.Errorf("another key: %v", err)
	}
}

// damage simulates a power failure, an edit, and a file of a newer program.
var damage = map[string]func([]byte) []byte{
	"empty":         func([]byte) []byte { return nil },
	"truncated":     func(b []byte) []byte { return b[:len(b)/2] },
	"card changed":  func(b []byte) []byte { return []byte(strings.Replace(string(b), `"n_fit": 3`, `"n_fit": 9`, 1)) },
	"data changed":  func(b []byte) []byte { return []byte(strings.Replace(string(b), `"data": "e`, `"data": "f`, 1)) },
	"other format":  func(b []byte) []byte { return []byte(strings.Replace(string(b), envelopeFormat, "recipe", 1)) },
	"newer version": func(b []byte) []byte { return []byte(strings.Replace(string(b), `"version": 1`, `"version": 2`, 1)) },
}

// TestDamagedModelsAreNotReplaced: a family that predicts before a fit does so for keys without a model, and not
// for the key of a damaged one.
func TestDamagedModelsAreNotReplaced(t *testing.T) {
	hybrid, err := family.Lookup("hybrid")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range damage {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t)
			row := spec.Measurement{Config: config(keys[4], 2), Outcome: spec.OK, Source: "test", StepSec: []float64{0.5}}
			fitted, card, err := perfmodel.FitKey(t.Context(), hybrid, []spec.Measurement{row}, perfmodel.FitOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Put(card, fitted); err != nil {
				t.Fatal(err)
			}
			path := r.path(keys[4], "hybrid")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			changed := change(b)
			if bytes.Equal(changed, b) {
				changed = b[:10]
			}
			if err := os.WriteFile(path, changed, 0o644); err != nil {
				t.Fatal(err)
			}
			p, err := r.Predictor("hybrid", strings.ToLower)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := p.Predict(t.Context(), config(keys[4], 2)); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("the damaged model: %g samples/s, %v, want an error naming %s", got.Throughput, err, path)
			}
			if _, err := p.Predict(t.Context(), config(keys[5], 2)); err != nil {
				t.Errorf("without a model: %v", err)
			}
		})
	}
}

func TestDamagedFilesAreNamedAndTheRestIsUsable(t *testing.T) {
	for name, change := range damage {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t)
			put(t, r, keys[1], 1)
			put(t, r, keys[4], 1)
			path := r.path(keys[4], "rubick")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, change(b), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, _, err := r.Get(keys[4], "rubick"); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("Get: %v, want an error naming %s", err, path)
			}
			cards, err := r.List()
			if len(cards) != 1 || cards[0].Key != keys[1] || err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("List: %d cards, %v", len(cards), err)
			}
			p, err := r.Predictor("rubick", strings.ToLower)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Predict(t.Context(), config(keys[1], 2)); err != nil {
				t.Errorf("the sound model: %v", err)
			}
			if _, err := p.Predict(t.Context(), config(keys[4], 2)); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("the damaged model: %v, want an error naming %s", err, path)
			}
		})
	}
}

// TestLeftovers: a process that was killed while writing leaves a partial model. List ignores it, and a Put an
// hour later removes it.
func TestLeftovers(t *testing.T) {
	r := newRegistry(t)
	put(t, r, keys[1], 1)
	path := r.path(keys[1], "rubick")
	left, err := atomicfile.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = left.WriteString("half a mod")
	old := time.Now().Add(-2 * atomicfile.AbandonedAge)
	if err := errors.Join(err, left.Close(), os.Chtimes(left.Name(), old, old)); err != nil {
		t.Fatal(err)
	}
	if cards, err := r.List(); len(cards) != 1 || err != nil {
		t.Errorf("listed %d cards, %v", len(cards), err)
	}
	put(t, r, keys[1], 2)
	files, err := os.ReadDir(r.dir)
	if err != nil || len(files) != 1 || filepath.Join(r.dir, files[0].Name()) != path {
		t.Errorf("%v, %v, want one model", files, err)
	}
}

func TestPredictorDispatchesOnKey(t *testing.T) {
	r := newRegistry(t)
	if _, err := r.Predictor("rubick", strings.ToLower); !errors.Is(err, perfmodel.ErrNotCovered) {
		t.Errorf("nothing fitted: %v", err)
	}
	put(t, r, keys[4], 1)
	put(t, r, keys[5], 10)
	p, err := r.Predictor("rubick", strings.ToLower)
	if err != nil {
		t.Fatal(err)
	}
	fast, err1 := p.Predict(t.Context(), config(keys[4], 2))
	slow, err2 := p.Predict(t.Context(), config(keys[5], 2))
	if err1 != nil || err2 != nil || fast.Throughput < 5*slow.Throughput {
		t.Errorf("%g and %g samples/s, %v, %v; want about 10 to 1", fast.Throughput, slow.Throughput, err1, err2)
	}
	other, err := p.Predict(t.Context(), config(spec.Key{Model: "A", Accelerator: "b c"}, 2))
	if err != nil || other.Throughput != fast.Throughput {
		t.Errorf("by another name: %g samples/s, %v, want %g", other.Throughput, err, fast.Throughput)
	}
	_, err = p.Predict(t.Context(), config(keys[1], 2))
	if !errors.Is(err, perfmodel.ErrNotCovered) || !strings.Contains(err.Error(), "a on b c, a b on c") {
		t.Errorf("unknown key: %v", err)
	}
	if _, err := r.Predictor("rubik", strings.ToLower); err == nil || !strings.Contains(err.Error(), "there are: rubick") {
		t.Errorf("unknown family: %v", err)
	}
}

func TestPutRefusesNamelessCards(t *testing.T) {
	r := newRegistry(t)
	card, fitted := fit(t, keys[1], 1)
	for _, name := range []string{"", "not \xff UTF-8"} { // JSON would change it, so that Get would find another key
		card.Model = name
		if err := r.Put(card, fitted); err == nil || !strings.HasPrefix(err.Error(), "registry: ") {
			t.Errorf("%q: error %v", name, err)
		}
	}
}

// TestConcurrentReadersNeverSeeAPart reads one key while it is being replaced.
func TestConcurrentReadersNeverSeeAPart(t *testing.T) {
	r := newRegistry(t)
	card, fitted := put(t, r, keys[1], 1)
	var wg sync.WaitGroup
	for range 2 {
		wg.Add(2)
		go func() {
			defer wg.Done()
			for range 20 {
				if err := r.Put(card, fitted); err != nil {
					t.Error(err)
				}
			}
		}()
		go func() {
			defer wg.Done()
			for range 50 {
				if _, _, err := r.Get(keys[1], "rubick"); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
}
