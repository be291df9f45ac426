package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/internal/query/querytest"
	"github.com/pacer-ml/pacer/cmd/server"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
	"github.com/pacer-ml/pacer/planner"
)

// sameQuestion is a request in a form that every interface takes.
type sameQuestion struct {
	model, accelerator string // sameOwn and sameChip are those of the request
	adapter            string
	plan               spec.Plan
	seq, packed        int
	imbalance          float64 // of experts, 0 = not stated
	framework, date    string
	parts              []string
}

// A model and a device type that neither the catalog nor the store has.
var (
	sameOwn      = spec.Model{Name: "OwnNet", Kind: spec.Decoder, Layers: 24, Hidden: 2048, Heads: 16, KVHeads: 8, FFN: 5632, Vocab: 32000, GatedMLP: true}
	sameOwnFlags = "name=OwnNet,layers=24,hidden=2048,heads=16,kv-heads=8,ffn=5632,vocab=32000,mlp=gated"
	sameChip     = spec.Accelerator{Name: "OwnChip", FP32: 50e12, BF16: 400e12, MemBytes: 64 << 30, MemBps: 2e12, ScaleUpBps: 200e9, HostBps: 30e9}
	sameChipFile = "name: OwnChip\ntflops: {fp32: 50, bf16: 400}\nmemory_gib: 64\nmemory_gbytes_per_s: 2000\nintra_gbytes_per_s: 200\nhost_gbytes_per_s: 30\n"
)

// sameAnswer has the figures that every interface gives.
type sameAnswer struct {
	sec, lo, hi, gib, allocated, reserved float64

	verdict string // whether it fits
}

// Relative differences of equal answers: of JSON, and of rows. The figures of rows are rounded.
const (
	sameJSON = 1e-9
	sameRow  = 1e-6
)

// differs reports whether two answers differ by more than a part.
func (a sameAnswer) differs(b sameAnswer, part float64) bool {
	far := func(x, y float64) bool { return !(math.Abs(x-y) <= part*math.Abs(x)) }
	return far(a.sec, b.sec) || far(a.lo, b.lo) || far(a.hi, b.hi) || far(a.gib, b.gib) || far(a.allocated, b.allocated) || far(a.reserved, b.reserved) || a.verdict != b.verdict
}

// drawQuestion draws a question over models, accelerators, plans and training stacks.
func drawQuestion(rng *rand.Rand) sameQuestion {
	q := sameQuestion{model: oneOf(rng, "gpt2-large", "llama3-8b", "llama2-13b", "qwen2.5-7b", "mixtral-8x7b", sameOwn.Name),
		accelerator: oneOf(rng, "a100-80gb", "h100", "h200", "b200", sameChip.Name), adapter: oneOf(rng, "", "", "", "lora:16", "qlora:64:qkv+o+mlp", "dora:8:mlp")}
	p := spec.Plan{DP: oneOf(rng, 1, 2, 4, 8), TP: oneOf(rng, 1, 2, 4), PP: oneOf(rng, 1, 1, 2, 4), CP: oneOf(rng, 1, 1, 1, 2), EP: 1, MicroBatch: oneOf(rng, 1, 2, 4), Precision: spec.BF16}
	if q.model == "mixtral-8x7b" {
		p.EP, q.imbalance = oneOf(rng, 1, p.DP), oneOf(rng, 0, 0, 1, 1.25, 2)
	}
	p.AccumSteps = p.PP * oneOf(rng, 1, 2, 4)
	p.ZeRO = oneOf(rng, 0, 1, 2, 3)
	if p.PP > 1 {
		p.ZeRO = min(p.ZeRO, 1)
	}
	p.Recompute = oneOf(rng, spec.RecomputeNone, spec.RecomputeSelective, spec.RecomputeFull)
	q.seq = oneOf(rng, 1024, 2048, 4096)
	q.packed = oneOf(rng, 0, 0, 0, 300, 1024)
	q.framework = oneOf(rng, "", "", "megatron-lm", "mcore", "Megatron Core@0.13", "Megatron-LM@..2024-07", "DeepSpeed", "FSDP@2023", "torchtitan", "NeMo@24.09",
		"Megatron-LM@0.9", "GPT-NeoX", "mcore@0.15.0rc7 launch=eager", "@..2023-01", "torchtitan@2025-10")
	of, _ := stack.Parse(q.framework)
	p.SequenceParallel = p.TP > 1 && p.Recompute == spec.RecomputeSelective && of.Name == "Megatron-LM" // rows, which do not record it, are read so
	q.plan = p
	q.date = oneOf(rng, "", "", "2023", "2024-07", "2025-01-31")
	for _, k := range stack.Kinds() {
		if rng.IntN(8) == 0 {
			q.parts = append(q.parts, k.Name+"="+k.Values[rng.IntN(len(k.Values))].Name)
		}
	}
	if rng.IntN(4) == 0 {
		q.parts = append(q.parts, "recompute="+oneOf(rng, "moe_act+layernorm", "mlp+core_attn", "moe+mla_up_proj", "shared_experts"))
	}
	return q
}

func oneOf[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// byFlags asks the command line.
func (q *sameQuestion) byFlags(t *testing.T, dir string) sameAnswer {
	t.Helper()
	model, accelerator := q.model, q.accelerator
	if model == sameOwn.Name {
		model = sameOwnFlags
	}
	if accelerator == sameChip.Name {
		accelerator = filepath.Join(dir, "chip.yaml")
		spectest.WriteFile(t, accelerator, []byte(sameChipFile), 0o600)
	}
	args := []string{"pacer", "--data", dir, "predict", "-m", model, "-a", accelerator, "--plan", q.plan.String(), "--seq", strconv.Itoa(q.seq), "-o", "json"}
	if q.framework != "" {
		args = append(args, "--framework", q.framework)
	}
	if q.adapter != "" {
		args = append(args, "--adapter", q.adapter)
	}
	if q.packed > 0 {
		args = append(args, "--packed", strconv.Itoa(q.packed))
	}
	if q.imbalance > 0 {
		args = append(args, "--imbalance", fmt.Sprint(q.imbalance))
	}
	if q.date != "" {
		args = append(args, "--date", q.date)
	}
	for _, p := range q.parts {
		args = append(args, "--stack", p)
	}
	var out, log bytes.Buffer
	if code := run(t.Context(), args, nil, &out, &log); code != fail.OK {
		t.Fatalf("%q: exit code %d: %s", args, code, log.String())
	}
	return planAnswerOf(t, out.Bytes())
}

// byHTTP asks a server.
func (q *sameQuestion) byHTTP(t *testing.T, url string) sameAnswer {
	t.Helper()
	body := map[string]any{"model": q.model, "accelerator": q.accelerator, "plan": q.plan.String(), "seq": q.seq}
	if q.framework != "" {
		body["framework"] = q.framework
	}
	if q.adapter != "" {
		body["adapter"] = q.adapter
	}
	if q.packed > 0 {
		body["packed"] = q.packed
	}
	if q.imbalance > 0 {
		body["imbalance"] = q.imbalance
	}
	if q.model == sameOwn.Name {
		body["network"] = sameOwn
	}
	if q.accelerator == sameChip.Name {
		body["device"] = sameChip
	}
	if q.date != "" {
		body["date"] = q.date
	}
	if q.parts != nil {
		body["stack"] = q.parts
	}
	in, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(url+"/v1/predict", "application/json", bytes.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var out bytes.Buffer
	if _, err := out.ReadFrom(response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v: %s", in, response.StatusCode, err, out.String())
	}
	return planAnswerOf(t, out.Bytes())
}

// planAnswerOf reads the answer with one plan.
func planAnswerOf(t *testing.T, text []byte) sameAnswer {
	t.Helper()
	var got query.Plans
	if err := json.Unmarshal(text, &got); err != nil || len(got.Plans) != 1 {
		t.Fatalf("%v in %s", err, text)
	}
	p := got.Plans[0]
	return sameAnswer{p.StepTimeSec, p.StepTimeLo, p.StepTimeHi, p.MemGiB, p.AllocatedGiB, p.ReservedGiB, p.Verdict}
}

// byGo asks a planner.
func (q *sameQuestion) byGo(t *testing.T) sameAnswer {
	t.Helper()
	m, chip := sameOwn, query.ChipOf(sameChip)
	var err error
	if q.model != m.Name {
		if m, err = catalog.Model(q.model); err != nil {
			t.Fatal(err)
		}
	}
	adapter, err := spec.ParseAdapter(q.adapter)
	if err != nil {
		t.Fatal(err)
	}
	a, node := chip.Accelerator, chip.Node
	if q.accelerator != a.Name {
		if a, err = catalog.Accelerator(q.accelerator); err != nil {
			t.Fatal(err)
		}
		node, _ = catalog.NodeFor(a.Name)
	}
	s, err := stack.State(q.framework, strings.Join(q.parts, " "), q.date)
	if err != nil {
		t.Fatal(err)
	}
	n := q.plan.Devices()
	ch, err := planner.New(&analytic.Model{}, planner.Options{}).Fixed(t.Context(), planner.Request{
		Model: m.Adapted(adapter).WithPacked(q.packed).WithImbalance(q.imbalance), SeqLen: q.seq, Accelerator: a, Link: node.Link, PerNode: node.Devices, NodeHostBytes: node.HostBytes, Framework: s.Canonical(),
		Devices: n, Shape: spec.Packed(n, node.Devices), Plan: &q.plan, GlobalBatch: q.plan.GlobalBatch(),
	})
	if err != nil {
		t.Fatal(err)
	}
	sec, lo, hi := ch.Prediction.StepSec(q.plan.GlobalBatch())
	p := &ch.Prediction
	return sameAnswer{sec, lo, hi, p.MemoryBytes / memory.GiB, p.AllocatedBytes / memory.GiB, p.ReservedBytes / memory.GiB, string(ch.Verdict)}
}

// rowColumns are the columns of row.
var rowColumns = strings.Fields("row_id model accelerator num_gpus dp tp pp cp ep micro_batch global_batch zero_stage recompute precision seq_len framework stack source_date adapter packed imbalance layers hidden heads kv_heads ffn vocab")

func (q *sameQuestion) row(id int) []string {
	p := &q.plan
	n := func(v int) string { return strconv.Itoa(v) }
	shape := make([]string, 6)
	if m := &sameOwn; q.model == m.Name {
		shape = []string{n(m.Layers), n(m.Hidden), n(m.Heads), n(m.KVHeads), n(m.FFN), n(m.Vocab)}
	}
	return append([]string{n(id), q.model, q.accelerator, n(p.Devices()), n(p.DP), n(p.TP), n(p.PP), n(p.CP), n(p.EP), n(p.MicroBatch), n(p.GlobalBatch()), n(p.ZeRO),
		string(p.Recompute), string(p.Precision), n(q.seq), q.framework, strings.Join(q.parts, " "), q.date, q.adapter, n(q.packed), fmt.Sprint(q.imbalance)}, shape...)
}

// byRows asks predict --in, and returns the answers by index of the question. Rows have no figures of a device.
func byRows(t *testing.T, questions []sameQuestion) map[int]sameAnswer {
	t.Helper()
	var in bytes.Buffer
	w := csv.NewWriter(&in)
	rows := [][]string{rowColumns}
	for i := range questions {
		if questions[i].accelerator != sameChip.Name {
			rows = append(rows, questions[i].row(i))
		}
	}
	if err := w.WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	got, err := csv.NewReader(strings.NewReader(predictRows(t, in.String(), "--family", "analytic"))).ReadAll()
	if err != nil || len(got) != len(rows) {
		t.Fatalf("%d rows of %d, %v", len(got), len(rows), err)
	}
	out := map[int]sameAnswer{}
	for i, cells := range got[1:] {
		number := func(column int) float64 {
			v, err := strconv.ParseFloat(cells[column], 64)
			if err != nil {
				t.Fatalf("row %s: %v: %q", rows[i+1], err, cells)
			}
			return v
		}
		id, err := strconv.Atoi(cells[0])
		if err != nil {
			t.Fatal(err)
		}
		out[id] = sameAnswer{number(1), number(2), number(3), number(6), number(len(cells) - 2), number(len(cells) - 1), cells[8]}
	}
	return out
}

// TestE2ESameAnswers: the command line, a row of a file, the server and the Go packages give the same answer to the
// same question.
func TestE2ESameAnswers(t *testing.T) {
	db, reg := querytest.Open(t)
	s, err := server.New(db, reg, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(s.Handler())
	defer site.Close()

	rng := rand.New(rand.NewPCG(1, 2))
	questions := make([]sameQuestion, 200)
	for i := range questions {
		questions[i] = drawQuestion(rng)
	}
	rows, empty := byRows(t, questions), t.TempDir()
	distinct := map[string]bool{}
	for i := range questions {
		q := &questions[i]
		want := q.byGo(t)
		distinct[fmt.Sprint(want)] = true
		answers := map[string]sameAnswer{"flags": q.byFlags(t, empty), "HTTP": q.byHTTP(t, site.URL)}
		if row, ok := rows[i]; ok {
			answers["a row"] = row
		}
		for name, got := range answers {
			part := sameJSON
			if name == "a row" {
				part = sameRow
			}
			if got.differs(want, part) {
				t.Errorf("%+v: by %s %+v, in Go %+v", *q, name, got, want)
			}
		}
	}
	if len(distinct) < 190 {
		t.Errorf("%d different answers to 200 questions", len(distinct))
	}
}
