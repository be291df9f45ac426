package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// refExample is a command. Its output has every field of a kind of answer.
type refExample struct {
	title string
	args  string
}

// refStudy is study.yaml of refExamples.
const refStudy = "name: two\ncluster: 2x8\nworkloads: synthetic:jobs=20,per-hour=60\npolicies: [fifo, las]\nseeds: 2\n"

// refCells is cells.yaml of refExamples.
const refCells = "seeds: 1-2\npolicies: [las, fifo-backfill, themis]\ndefaults: {models: none, cluster: 2x8, jobs: 20, guaranteed: 0.3}\n" +
	"cells: [{name: usual}, {name: slow, variant_of: usual, time_scale: 10}]\n"

// refExamples run one after the other in one directory.
var refExamples = []refExample{
	{"import", "import measured cpu-small"},
	{"export", "export rows.parquet --source campaign/cpu-small"},
	{"fit", "fit --family hybrid --model gpt-mini"},
	{"store quarantine", "store quarantine --source campaign/cpu-small --model vit-mini --reason throttled"},
	{"store ls", "store ls"},
	{"plan", "plan --model llama3-8b --accelerator h100 --devices 16 --global-batch 128 --top 2 --pareto --probe 1 --explain --from dp=16,mb=1,ga=8,zero=3 --move remaining=1e6"},
	{"predict", "predict --model llama3-8b --accelerator h100 --plan dp=4,tp=4,mb=2,ga=16,zero=1 --explain"},
	{"curve", "curve --model llama3-8b --accelerator h100 --max-devices 4 --global-batch 64 --axes network-gbps=100+400,cpus=4,host-gib=256"},
	{"fit-check", "fit-check --model llama3-8b --accelerator h100 --plan dp=4,tp=2,mb=1,ga=8,zero=2,sp=1"},
	{"simulate", "simulate --workload synthetic:jobs=20,per-hour=60,guaranteed=0.3 --cluster 2x8 --policy fifo,las --jobs-out jobs.csv"},
	{"sweep", "sweep study.yaml"},
	{"bench scheduling", "bench scheduling --cells cells.yaml"},
	{"report diff", "report diff jobs.csv jobs.csv --policy-a fifo --policy-b fifo"},
	{"profile plan", "profile plan gpu-node.yaml --assume 8xH100-80GB-SXM --top 1"},
	{"profile explain", "profile explain gpu-node.yaml --assume 8xH100-80GB-SXM --next 1"},
	{"profile status", "profile status cpu-small"},
	{"ls models", "ls models gpt2-xl"},
	{"ls accelerators", "ls accelerators h100"},
	{"ls nodes", "ls nodes dgx"},
	{"ls measurements", "ls measurements"},
	{"ls cards", "ls cards"},
	{"version", "version"},
	{"calibrate", "calibrate --model gpt-mini --runner replay:campaign/cpu-small --budget 1h"},
	{"check", "check train.toml --accelerator h100 --devices 16 --tokens 1e11"},
	{"recommend", "recommend --model llama3-8b --tokens 1e12 --have h100:64@2.1"},
	{"advise", "advise --dry-run --set --timeout 1m --max-devices 4 -a h100 -- kubectl apply -f job.yaml"},
	{"calibrate --emit", "calibrate --model llama3-8b --accelerator h100 --devices 8 --emit deepspeed --points 2 --rows rows.csv"},
}

// refJob is job.yaml of refExamples, and refLaunch train.toml.
const (
	refJob = `{apiVersion: batch/v1, kind: Job, metadata: {name: train, annotations: {pacer.dev/model: llama3-8b, pacer.dev/batch: "128"}},
  spec: {completionMode: Indexed, completions: 2, parallelism: 2, template: {spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 4}}}]}}}}
`
	refLaunch = `model = {name = "llama3", flavor = "8B"}
training = {local_batch_size = 1, seq_len = 8192, steps = 1000}
parallelism = {tensor_parallel_degree = 2}
activation_checkpoint = {mode = "none"}
unknown = 1
`
)

// outputsPage lists the fields of what commands print as JSON and CSV.
func outputsPage(t *testing.T) string {
	dir := t.TempDir()
	campaign := spectest.ReadFile(t, "../../bench/campaigns/gpu-node.yaml")
	t.Chdir(dir)
	for name, text := range map[string]string{"study.yaml": refStudy, "cells.yaml": refCells, "gpu-node.yaml": string(campaign), "job.yaml": refJob, "train.toml": refLaunch} {
		spectest.WriteFile(t, name, []byte(text), 0o600)
	}
	t.Setenv("XDG_DATA_HOME", dir)
	var b strings.Builder
	b.WriteString("# Fields of JSON and CSV output\n\nThe fields that a command of each kind prints with `--output json` and `--output csv`. " +
		"Fields that an answer lacks are absent here too. [The contract](contract.md) has units and rules.\n")
	meanings := readMeanings(t)
	for _, e := range refExamples {
		args := strings.Fields(e.args)
		var v any
		with := func(format string) []string { // before the command of advise
			at := slices.Index(append(args, "--"), "--")
			return slices.Insert(slices.Clone(args), at, "--output", format)
		}
		fmt.Fprintf(&b, "\n## `pacer %s`\n\n    pacer %s\n\n| field | type | meaning |\n|---|---|---|\n", e.title, strings.Join(with("json"), " "))
		text := refOutput(t, with("json")...)
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatalf("%s: %v\n%s", e.args, err, text)
		}
		fields := map[string]string{}
		refFields(fields, "", v)
		for _, f := range slices.Sorted(maps.Keys(fields)) {
			meaning := meanings.of(e.title, f)
			if meaning == "" {
				t.Errorf("%s: field %s has no meaning: add one to cmd/pacer/testdata/output_fields.txt", e.title, f)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f, fields[f], refEscape(meaning))
		}
		header, _, _ := strings.Cut(string(refOutput(t, with("csv")...)), "\n")
		fmt.Fprintf(&b, "\nCSV: `%s`\n", refParams.ReplaceAllString(strings.TrimSpace(header), ",params.NAME.value,params.NAME.unit"))
	}
	return b.String()
}

// refParams are the columns of fitted parameters, which differ by family.
var refParams = regexp.MustCompile(`(,("params\.[^"]*"|params\.[^,"]*))+`)

// refFields adds the path and type of every value in v.
func refFields(fields map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if strings.HasSuffix(path, "].params") || strings.HasSuffix(path, "env") { // named by what was fitted or run
				k = "NAME"
			}
			refFields(fields, strings.TrimPrefix(path+"."+k, "."), e)
		}
	case []any:
		if len(v) == 0 {
			fields[path] = "list"
		}
		for _, e := range v {
			refFields(fields, path+"[]", e)
		}
	case string:
		fields[path] = "text"
	case bool:
		fields[path] = "true or false"
	case float64:
		fields[path] = "number"
	case nil:
		if fields[path] == "" {
			fields[path] = "null or a value"
		}
	}
}

// fieldMeanings are the meanings of output fields: by name, or by the name before it, or
// the command, a dot and the name.
type fieldMeanings map[string]string

//go:embed testdata/output_fields.txt
var outputFields string

func readMeanings(t *testing.T) fieldMeanings {
	out := fieldMeanings{}
	for line := range strings.Lines(outputFields) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, meaning, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || out[name] != "" {
			t.Fatalf("output_fields.txt: %q is not NAME: MEANING, or there twice", line)
		}
		out[name] = meaning
	}
	return out
}

// of returns the meaning of the field at a path in the output of a command, "" for none.
func (m fieldMeanings) of(command, path string) string {
	parts := strings.Split(strings.ReplaceAll(path, "[]", ""), ".")
	last := len(parts) - 1
	before := command
	if last > 0 {
		before = parts[last-1]
	}
	switch parts[last] {
	case "mean":
		if what := m.of(command, strings.Join(parts[:last], ".")); what != "" {
			return what + " (mean)"
		}
	case "lo", "hi":
		if last > 0 && m[before+"."+parts[last]] == "" && m.of(command, strings.Join(parts[:last], ".")) != "" {
			return m[parts[last]]
		}
	}
	for _, name := range []string{before + "." + parts[last], command + "." + parts[last], parts[last]} {
		if m[name] != "" {
			return m[name]
		}
	}
	return ""
}
