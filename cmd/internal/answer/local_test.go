package answer_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
)

// The page's WebAssembly has no database and no columns: they would double its size.
func TestLocalIsLight(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "../../server/page/wasm")
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, heavy := range []string{"dgraph-io/badger", "apache/arrow", "net/http\n", "danielgtaylor/huma"} {
		if strings.Contains(string(out), heavy) {
			t.Errorf("the page's WebAssembly imports %s", heavy)
		}
	}
}

// Bad requests are answered with what is wrong.
func TestLocalRefuses(t *testing.T) {
	l, err := answer.NewLocal()
	if err != nil {
		t.Fatal(err)
	}
	const good = `{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3"}`
	for _, c := range []struct {
		path, body, says string
		status           int
	}{
		{"/v1/predict", good, `"step_time_s":`, 200},
		{"/v1/predict?x=1", good, `"step_time_s":`, 200},
		{"/v1/models", "", `"Llama3-8B"`, 200},
		{"/v1/accelerators", "", `"H100-80GB-SXM"`, 200},
		{"/v1/frameworks", "", `"megatron"`, 200},
		{"/v1/predict", good + good, "goes on after its end", 422},
		{"/v1/predict", `{"model":"llama3-8b","turnip":1}`, `unknown field \"turnip\"`, 422},
		{"/v1/predict", `{"model":7}`, "model is a JSON number", 422},
		{"/v1/predict", "", "cannot be read", 422},
		{"/v1/predict", `{"model":"turnip","accelerator":"h100","plan":"dp=8"}`, "turnip", 404},
		{"/v1/plan", `{"model":"llama3-8b","accelerator":"h100","devices":8}`, "how many samples per optimizer step", 422},
		{"/v1/plan", `{"model":"llama3-8b","accelerator":"h100","devices":-8,"global_batch":8}`, "devices", 422},
		{"/v1/plan", `{"model":"llama3-405b","accelerator":"v100","devices":1,"global_batch":8}`, `"infeasible"`, 422},
		{"/v1/nearest", good, "pacer serve", 501},
		{"%zz", good, "pacer serve", 501},
	} {
		status, out := l.Answer(t.Context(), c.path, []byte(c.body))
		if status != c.status || !strings.Contains(string(out), c.says) {
			t.Errorf("%s %s: %d %.300s, want %d with %q", c.path, c.body, status, out, c.status, c.says)
		}
	}
}
