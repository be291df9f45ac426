package answer

import (
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// TestKeptPlanIsOfItsQuestion: a kept plan answers bodies that ReadQuestion accepts, each about the plan that was kept and at
// the length that the body states.
func TestKeptPlanIsOfItsQuestion(t *testing.T) {
	none, err := registry.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := New(&query.Resolver{Fitted: none, Read: func(func(reader.Store) error) error { return nil }})
	head := `{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3"`
	var bodies []string
	for _, rest := range []string{
		``, `,"seq":1024`, `,"seq": 2048 `, `,"seq":	8`, `,"seq":1`, `,"seq":16777216`, `,"seq":16777217`, `,"seq":999999999`, `,"seq":1234567890`,
		`,"seq" :1024`, `,"seq"	:2048`, `,"seq" :`, `,"gpu_name":"seq"`, `,"shape":"seq","seq":8`, `,"shape":"seq","seq" :16`, `,"seq":`, `,"seq": `, `,"seq":0`, `,"seq":012`, `,"seq":1.5`, `,"seq":1e3`, `,"seq":-1`, `,"seq":"8"`, `,"seq":1 2`, `,"seq":1 "`,
		`,"seq":8,"seq":9`, `,"seq":8,"seq":`, `,"seq":,"seq":9`, `,"seq":8,"devices":8`, `,"devices":8,"seq":8`, `,"devices":8`, `,"seq":8,"devices":`,
		`,"packed":512`, `,"packed":512,"seq":1024`, `,"packed":512,"seq":2048`, `,"packed" :512,"seq":2048`, `,"shape":"packed","seq":8`, `,"shape":"packed"`,
	} {
		bodies = append(bodies, head+rest+`}`, `{"seq":4096,`+head[1:]+rest+`}`, ` `+head+rest+` } `)
	}
	bodies = append(bodies, head+`,"seq":1`+strings.Repeat(" ", maxKeptText)+`}`, head+`,"seq":1`+strings.Repeat("\n", 64)+`}`)
	of := map[*Prepared]Question{}
	kept := 0
	for range 2 {
		for _, body := range bodies {
			q, ok := ReadQuestion([]byte(body))
			p, seq := a.Kept([]byte(body))
			switch {
			case p == nil && ok:
				of[a.Keep(t.Context(), &q, []byte(body))] = q.PlanOnly()
			case p != nil && !ok:
				t.Errorf("a plan answers %s", body)
			case p != nil:
				kept++
				if of[p] != q.PlanOnly() || q.Packed == 0 && seq != q.Seq || q.Packed > 0 && seq != 0 {
					t.Errorf("%s: plan of %+v at %d", body, of[p], seq)
				}
			}
		}
	}
	for text := range a.plans {
		if len(text) > maxKeptText {
			t.Errorf("a text of %d bytes is kept, want at most %d", len(text), maxKeptText)
		}
	}
	if kept < 30 || len(of) < 10 {
		t.Errorf("%d bodies have a kept plan, %d plans: too few", kept, len(of))
	}
}
