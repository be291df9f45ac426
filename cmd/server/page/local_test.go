package page_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/query/querytest"
	"github.com/pacer-ml/pacer/cmd/server"
	"github.com/pacer-ml/pacer/cmd/server/page"
)

// asked is a question to the API.
type asked struct {
	Path string         `json:"path"`
	Body map[string]any `json:"body"`
}

// drawAsked draws a question. Some are illegal or have no answer.
func drawAsked(rng *rand.Rand) asked {
	one := func(of ...any) any { return of[rng.IntN(len(of))] }
	devices := 1 << rng.IntN(7)
	body := map[string]any{"model": one("gpt2-xl", "llama3-8b", "llama3-70b", "mixtral-8x7b", "qwen2.5-7b", "bert-large", "no-such-model"),
		"accelerator": one("a100-80gb", "h100", "h200", "b200", "mi300x", "v100"), "global_batch": one(8, 64, 96, 512)}
	for name, v := range map[string]any{"framework": one("Megatron Core@0.13", "DeepSpeed", "torchtitan"), "adapter": one("lora:16", "qlora:64"), "precision": one("bf16", "fp8"),
		"seq": one(512, 8192), "inter_node_gbps": one(100, 1600)} {
		if rng.IntN(4) == 0 {
			body[name] = v
		}
	}
	switch rng.IntN(9) {
	case 8:
		if body["file"], body["text"] = "launch.sh", launchFile; rng.IntN(3) == 0 {
			body["to"] = "b200"
		}
		delete(body, one("accelerator", "model", "global_batch").(string))
		return asked{"/v1/check", body}
	case 0:
		body["max_devices"] = devices
		return asked{"/v1/curve", body}
	case 1:
		body["devices"] = devices
		return asked{"/v1/fit-check", body}
	case 2:
		delete(body, "accelerator")
		body["tokens"], body["have"] = 1e11, fmt.Sprintf("%v:%d@2.1,b200:8@4.5", one("h100", "a100-80gb"), devices)
		return asked{"/v1/recommend", body}
	case 3, 4:
		body["devices"], body["top"], body["explain"] = devices, 4, true
		return asked{"/v1/plan", body}
	}
	delete(body, "global_batch")
	body["plan"] = fmt.Sprintf("dp=%d,tp=%d,pp=%d,mb=%d,ga=%d,zero=%d,recompute=%v", 1<<rng.IntN(4), 1<<rng.IntN(4), 1<<rng.IntN(2), 1<<rng.IntN(3), 1<<rng.IntN(4), rng.IntN(4), one("none", "selective", "full"))
	body["explain"] = true
	return asked{"/v1/predict", body}
}

// differ returns where two JSON values differ, "" if they are equal. Numbers may differ by a part in 1e9, times of computation by any.
func differ(at string, a, b any) string {
	switch a := a.(type) {
	case float64:
		if b, ok := b.(float64); ok && (math.Abs(a-b) <= 1e-9*math.Abs(a) || strings.HasSuffix(at, ".elapsed_s")) {
			return ""
		}
	case map[string]any:
		if b, ok := b.(map[string]any); ok && len(a) == len(b) {
			for k := range a {
				if d := differ(at+"."+k, a[k], b[k]); d != "" {
					return d
				}
			}
			return ""
		}
	case []any:
		if b, ok := b.([]any); ok && len(a) == len(b) {
			for i := range a {
				if d := differ(fmt.Sprintf("%s[%d]", at, i), a[i], b[i]); d != "" {
					return d
				}
			}
			return ""
		}
	default:
		if reflect.DeepEqual(a, b) {
			return ""
		}
	}
	return fmt.Sprintf("%s: %v, %v", at, a, b)
}

// The page that pacer page writes answers as the server does, from a path below that of its host.
func TestE2EPageWithoutServer(t *testing.T) {
	bin := os.Getenv("PACER_BIN")
	if bin == "" {
		t.Skip("PACER_BIN is not set; make e2e builds the binary and sets it")
	}
	dir := filepath.Join(t.TempDir(), "public")
	if out, err := exec.Command(bin, "page", "--out", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	packed, err := os.ReadFile(filepath.Join(dir, "page", "pacer.wasm.gz"))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, plain); err != nil || n > 16e6 || len(packed) > 4e6 {
		t.Errorf("pacer.wasm.gz has %d bytes, and %d unpacked, want at most 4 and 16 MB: %v", len(packed), n, err)
	}
	if out, err := exec.Command(bin, "page", "--out", dir).CombinedOutput(); err != nil {
		t.Errorf("a page is not renewed: %v: %s", err, out)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(bin, "page", "--out", other).CombinedOutput(); err == nil || !strings.Contains(string(out), "not those of a page") {
		t.Errorf("a directory with other files: %v: %s", err, out)
	}
	host := httptest.NewServer(http.StripPrefix("/some/where", http.FileServer(http.Dir(dir))))
	t.Cleanup(host.Close)
	b := openAt(t, host.URL+"/some/where")
	b.load("/?model=llama3-8b&accelerator=h100&devices=16&batch=128")
	if got := b.text("#view h1"); !strings.Contains(got, "dp=") {
		t.Errorf("the best plan is %q", got)
	}
	b.accessible()
	for _, view := range []string{"trust", "explore"} {
		b.load("/?view=" + view + "&model=llama3-8b&accelerator=h100&devices=16&batch=128")
		if eval[bool](b, `document.querySelector("#view .problem") !== null`) {
			t.Errorf("view %s: %s", view, b.text("#view .problem"))
		}
	}
	if got := b.text("nav"); strings.Contains(got, "Operate") || strings.Contains(got, "Simulate") {
		t.Errorf("views without a server: %q", got)
	}

	db, reg := querytest.Open(t)
	s, err := server.New(db, reg, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, 11))
	answered := 0
	for range 20 { // ten at a time
		var questions []asked
		for range 10 {
			questions = append(questions, drawAsked(rng))
		}
		text, err := json.Marshal(questions)
		if err != nil {
			t.Fatal(err)
		}
		got := eval[[]struct {
			Out   any  `json:"out"`
			Found bool `json:"found"`
		}](b, `import(new URL("page/core.js", location.href).href).then(({api}) => Promise.all(`+string(text)+`.map(({path, body}) =>
			api(path, body).then((out) => ({out, found: true}), (err) => ({out: err.problem, found: false})))))`)
		for i, q := range questions {
			body, err := json.Marshal(q.Body)
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(http.MethodPost, q.Path, bytes.NewReader(body))
			r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1"
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			var want any
			if err := json.Unmarshal(w.Body.Bytes(), &want); err != nil {
				t.Fatal(err)
			}
			if m, ok := want.(map[string]any); ok && w.Code != http.StatusOK { // types of problems are for programs
				delete(m, "type")
				if m, ok := got[i].Out.(map[string]any); ok {
					delete(m, "type")
				}
			}
			if d := differ("", want, got[i].Out); d != "" || got[i].Found != (w.Code == http.StatusOK) {
				t.Errorf("%s %s: status %d; the server and the page differ in %s", q.Path, body, w.Code, d)
			}
			if got[i].Found {
				answered++
			}
		}
	}
	if answered < 100 {
		t.Errorf("%d of 200 questions have an answer", answered)
	}
	b.clean()
}

// A program without WebAssembly says how to get one with it, and writes nothing.
func TestWritePage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "public")
	if err := page.Write(dir); !errors.Is(err, page.ErrNoWasm) || !strings.Contains(err.Error(), "make build") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v", dir, err)
	}
}
