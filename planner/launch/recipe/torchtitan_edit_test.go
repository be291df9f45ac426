package recipe

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/launch"
)

// edit returns the file after the changes that Diff offers, and fails where these are not those of the diff.
func edit(t interface{ Fatalf(string, ...any) }, r *Recipe, from, to spec.Config) (edited string, ok bool) {
	text, why := r.Diff(from, to, Options{})
	if why != "" {
		return "", false
	}
	return patched(t, r.text, text), true
}

func planned(t *testing.T, p string) spec.Config {
	t.Helper()
	plan, err := spec.ParsePlan(p)
	if err != nil {
		t.Fatal(err)
	}
	c := spec.Config{Model: networks[0], Plan: plan, Shape: spec.Packed(plan.Devices(), 8)}
	c.Accelerator = h100
	return c
}

const (
	titanHead = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n"
	titanSeq  = "seq_len = 8192\n"
)

// Edits of torchtitan files keep comments and all other keys, in every way that TOML writes a table.
func TestTorchtitanEdits(t *testing.T) {
	for _, c := range []struct {
		name, text, from, to string
		want                 []string // lines of the edited file that the file does not have
		gone                 []string
	}{
		{"a comment after the value", titanHead + "[training]\nlocal_batch_size = 1 # per device\n" + titanSeq + "[activation_checkpoint]\nmode = \"full\"  # [\"none\", \"full\"]\n",
			"dp=8,mb=1,zero=3,recompute=full", "dp=8,mb=1,zero=3", []string{`mode = "none"  # ["none", "full"]`}, nil},
		{"no table for the key", titanHead + "[training]\nlocal_batch_size = 2\n" + strings.TrimSuffix(titanSeq, "\n"),
			"dp=8,mb=2,zero=3", "dp=8,mb=2,zero=3,recompute=full", []string{"", "[activation_checkpoint]", `mode = "full"`}, nil},
		{"an empty table", titanHead + "[activation_checkpoint]\n[training]\nlocal_batch_size = 2\n" + titanSeq,
			"dp=8,mb=2,zero=3", "dp=8,mb=2,zero=3,recompute=full", []string{`mode = "full"`}, nil},
		{"the batch is not in the file", titanHead + "[training]\nlocal_batch_size = 2\n" + titanSeq + "[parallelism]\ntensor_parallel_degree = 1\ndata_parallel_shard_degree = -1\n",
			"dp=8,mb=2,zero=3", "dp=4,tp=2,mb=2,ga=2,zero=3,sp=1", []string{"global_batch_size = 16", "tensor_parallel_degree = 2"}, []string{"tensor_parallel_degree = 1"}},
		{"dotted keys", "model.name = \"llama3\"\nmodel.flavor = \"8B\"\ntraining.local_batch_size = 2\ntraining." + titanSeq + "parallelism.tensor_parallel_degree = 2\n",
			"dp=4,tp=2,mb=2,zero=3,sp=1", "dp=4,tp=2,mb=2,zero=2,sp=1", []string{`parallelism.fsdp_reshard_after_forward = "never"`}, nil},
		{"inline tables", "model = {name = \"llama3\", flavor = '8B'} # the model\ntraining = { local_batch_size = 2, seq_len = 8_192 }\nparallelism = {}\n",
			"dp=8,mb=2,zero=3", "dp=8,mb=1,ga=2,zero=2", []string{"training = {global_batch_size = 16,  local_batch_size = 1, seq_len = 8_192 }", `parallelism = {fsdp_reshard_after_forward = "never"}`}, nil},
		{"selective recomputation stays", titanHead + "[training]\nlocal_batch_size = 2\n" + titanSeq + "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"op\"\n",
			"dp=8,mb=2,zero=3,recompute=selective", "dp=4,cp=2,mb=2,ga=2,zero=3,recompute=selective", []string{"global_batch_size = 16", "", "[parallelism]", "context_parallel_degree = 2"}, nil},
		{"selective recomputation ends", titanHead + "[training]\nlocal_batch_size = 2\n" + titanSeq + "[activation_checkpoint]\nmode = \"selective\"\n",
			"dp=8,mb=2,zero=3,recompute=selective", "dp=8,mb=2,zero=3,recompute=full", []string{`mode = "full"`}, []string{`mode = "selective"`}},
		{"float8 beside other converters", strings.Replace(titanHead, "[model]", "[model]\nconverters = [ # all\n  \"mine\", # our own\n]", 1) + "[compile]\nenable = true\n[training]\nlocal_batch_size = 2\n" + titanSeq,
			"dp=8,mb=2,zero=3,precision=bf16", "dp=8,mb=2,zero=3,precision=fp8", []string{`converters = ["mine", "quantize.linear.float8"]`}, []string{`converters = [ # all`}},
		{"float8 of an older release", titanHead + "[float8]\nenable_fsdp_float8_all_gather = false\n[training]\nlocal_batch_size = 2\n" + titanSeq,
			"dp=8,mb=2,zero=3,precision=bf16", "dp=8,mb=2,zero=3,precision=fp8", []string{`converters = ["float8"]`, "enable_fsdp_float8_all_gather = true"}, []string{"enable_fsdp_float8_all_gather = false"}},
		{"float8 ends, compilation stays", strings.Replace(titanHead, "[model]", "[model]\nconverters = [\"quantize.linear.float8\"]", 1) + "[compile]\nenable = true\n[training]\nlocal_batch_size = 2\n" + titanSeq,
			"dp=8,mb=2,zero=3,precision=fp8", "dp=8,mb=2,zero=3,precision=bf16", nil, []string{`converters = ["quantize.linear.float8"]`}},
		{"keys of an old release", titanHead + "[training]\nbatch_size = 2\n" + titanSeq + "tensor_parallel_degree = 2\n",
			"dp=4,tp=2,mb=2,zero=3,sp=1", "dp=4,tp=2,mb=1,zero=3,sp=1", []string{"batch_size = 1"}, []string{"batch_size = 2"}},
		{"a text with a key in it", "[job]\ndescription = \"\"\"\n[parallelism]\ntensor_parallel_degree = 4\n\"\"\"\n" + titanHead + "[training]\nlocal_batch_size = 2\n" + titanSeq + "[parallelism]\ntensor_parallel_degree = 2\n",
			"dp=4,tp=2,mb=2,zero=3,sp=1", "dp=8,mb=2,zero=3", []string{"tensor_parallel_degree = 1"}, []string{"tensor_parallel_degree = 2"}},
		{"a pipeline that torchtitan splits", titanHead + "[training]\nlocal_batch_size = 4\n" + titanSeq + "[parallelism]\npipeline_parallel_degree = 2 # stages\npipeline_parallel_schedule = '1F1B'\n[activation_checkpoint]\nmode = 'none'\n",
			"dp=4,pp=2,ga=4,zero=1", "dp=4,pp=2,ga=4,zero=1,recompute=full", []string{`mode = "full"`}, []string{"mode = 'none'"}},
		{"the plan is not the file's", titanHead + "[training]\nlocal_batch_size = 2\n" + titanSeq + "[parallelism]\ntensor_parallel_degree = 1\n",
			"dp=2,tp=4,mb=2,zero=3,sp=1", "dp=2,tp=4,mb=4,zero=3,sp=1", []string{"tensor_parallel_degree = 4", "local_batch_size = 4"}, nil},
	} {
		if !strings.Contains(c.text, "mode =") && !strings.Contains(c.to, "recompute") { // torchtitan's default
			c.from, c.to = c.from+",recompute=selective", c.to+",recompute=selective"
		}
		r, err := Read("job.toml", []byte(c.text), Options{})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		from, to := planned(t, c.from), planned(t, c.to)
		edited, ok := edit(t, r, from, to)
		if !ok {
			t.Errorf("%s: no diff\n%s", c.name, c.text)
			continue
		}
		again, err := Read("job.toml", []byte(edited), Options{})
		if err != nil {
			t.Fatalf("%s: %v\n%s", c.name, err, edited)
		}
		if got, _, err := again.Plan(to.Plan.Devices()); err != nil || !samePlan(got, to.Plan) {
			t.Errorf("%s: the edited file says %s, want %s; %v\n%s", c.name, got, to.Plan, err, edited)
		}
		was, now := strings.Split(c.text, "\n"), strings.Split(edited, "\n")
		for _, line := range c.want {
			if n := count(now, line); n != count(was, line)+1 && line != "" || n == 0 {
				t.Errorf("%s: line %q is there %d times\n%s", c.name, line, n, edited)
			}
		}
		for _, line := range c.gone {
			if count(now, line) != count(was, line)-1 {
				t.Errorf("%s: line %q is still there\n%s", c.name, line, edited)
			}
		}
	}
}

func count(lines []string, line string) (n int) {
	for _, l := range lines {
		if l == line {
			n++
		}
	}
	return n
}

// What package launch writes for a plan is edited to each single change of the plan that torchtitan can run.
func TestTorchtitanEditsOfAnyPlan(t *testing.T) {
	spectest.Checks(t, 500)
	f, err := launch.Lookup("torchtitan")
	if err != nil {
		t.Fatal(err)
	}
	edits := 0
	rapid.Check(t, func(t *rapid.T) {
		from := drawConfig(t)
		s, err := f.Emit(from)
		if errors.Is(err, launch.ErrCannotExpress) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		r, err := Read(f.File, []byte(s.Text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		r.SetLayers(from.Model.Layers)
		for _, change := range planner.SingleChanges(from.Plan, &planner.Request{Model: from.Model, Accelerator: from.Accelerator}) {
			to := from
			to.Plan = change.Plan
			if to.Plan.Precision == spec.TF32 { // the environment decides, not the file
				continue
			}
			if _, err := f.Emit(to); errors.Is(err, launch.ErrCannotExpress) {
				continue
			}
			if _, ok := edit(t, r, from, to); !ok {
				t.Fatalf("no diff from %s to %s of\n%s", from.Plan, to.Plan, s.Text)
			}
			edits++
		}
	})
	if edits == 0 {
		t.Error("no file edited")
	}
	t.Logf("%d files edited", edits)
}

// The stages of an edited file are those of its own network, and a plan that torchtitan lacks for a network is not written.
func TestTorchtitanStagesOfTheNetwork(t *testing.T) {
	const text = "[model]\nname = \"x\"\nflavor = \"y\"\n[training]\nlocal_batch_size = 8\n" + titanSeq
	r, err := Read("job.toml", []byte(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	from, to := planned(t, "dp=8,mb=8,zero=3,recompute=selective"), planned(t, "dp=2,pp=4,vp=2,mb=1,ga=32,zero=1,recompute=selective")
	for _, c := range []*spec.Config{&from, &to} {
		c.Model = spec.Model{Name: "plain", Kind: spec.Decoder, Layers: 30, Hidden: 4096, Heads: 32, FFN: 16384, Vocab: 50000, SeqLen: 8192}
	}
	edited, ok := edit(t, r, from, to)
	if !ok || strings.Count(edited, `"layers.`) != 30 {
		t.Errorf("the stages hold %d layers, want 30:\n%s", strings.Count(edited, `"layers.`), edited)
	}
	for _, c := range []*spec.Config{&from, &to} {
		c.Model = spec.Model{Name: "Qwen3-32B", Kind: spec.Decoder, Layers: 64, Hidden: 5120, Heads: 64, KVHeads: 8, HeadDim: 128, FFN: 25600, Vocab: 151936, GatedMLP: true, SeqLen: 8192}
	}
	if text, why := r.Diff(from, to, Options{}); text != "" || !strings.Contains(why, "Qwen 3 has no pipeline") {
		t.Errorf("a pipeline of Qwen 3: %q, %q", why, text)
	}
}
