package answer

import (
	"strings"
	"testing"
	"time"

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

// TestRepeatedAnswers: a question that comes again has the same answer, at every length of samples, and its answer is
// computed for the first two times only.
func TestRepeatedAnswers(t *testing.T) {
	none, err := registry.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := New(&query.Resolver{Fitted: none, Read: func(func(reader.Store) error) error { return nil }})
	body := []byte(`{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3"}`)
	q, _ := ReadQuestion(body)
	p := a.Keep(t.Context(), &q, body)
	buffer, first := append(make([]byte, 0, 4<<10), "before "...), map[int]string{}
	for i, seq := range []int{0, 1024, 0, 0, 0, 1024, 1024, 1024, 4096, 1024, 1 << 20, 1 << 20, 1 << 20, 0, 1024} {
		answer := p.AppendDirect(t.Context(), buffer, seq, time.Now())
		text, elapsed, _ := strings.Cut(string(answer), `"elapsed_s":`)
		for i := range answer[len(buffer):] { // as the next answer in the buffer does
			answer[len(buffer)+i] = '-'
		}
		if !strings.HasPrefix(text, `before {"plans":[{"plan":"dp=8`) || !strings.HasSuffix(elapsed, "}") {
			t.Errorf("question %d: %s, then %s", i, text, elapsed)
		}
		if first[seq] == "" {
			first[seq] = text
		} else if text != first[seq] {
			t.Errorf("question %d, %d tokens: %s, was %s", i, seq, text, first[seq])
		}
		if kept, want := p.repeated.Load() != nil, i >= 3; kept != want {
			t.Errorf("question %d: an answer is kept: %t, want %t", i, kept, want)
		}
	}
	p.repeated.Store(&repeated{8, []byte("kept"), true})
	if text := string(p.AppendDirect(t.Context(), nil, 8, time.Now())); !strings.HasPrefix(text, `kept],"evaluated":1,"fitting":1,`) {
		t.Errorf("the kept answer is not used: %s", text)
	}
	fits := strings.HasSuffix(first[1024], `"fitting":1,`) && !strings.HasSuffix(first[1<<20], `"fitting":1,`)
	if first[0] == first[1024] || first[1<<20] == first[1024] || !fits {
		t.Errorf("answers %v", first)
	}
}
