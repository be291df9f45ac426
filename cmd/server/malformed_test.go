package server

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Bad input is a 4xx with field and value.
func TestBadInput(t *testing.T) {
	s := newServer(t, Options{MaxBody: 4096})
	deep := strings.Repeat("[", 5000)
	const known = `"model":"llama3-8b","accelerator":"h100"`
	for _, c := range []struct {
		path, body string
		status     int
		says       string // part of the answer
	}{
		{"/v1/predict", ``, 400, "body is required"},
		{"/v1/predict", `{`, 400, "unexpected EOF"},
		{"/v1/predict", `{` + known + `,"plan":"dp=8"} x`, 400, "after"},
		{"/v1/predict", `[]`, 422, "expected object"},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","seq":8192,"seq":4096}`, 422, `repeated property","location":"body.seq"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","Model":"gpt2-small"}`, 422, `repeated property","location":"body.Model"`},
		{"/v1/measurements", `{"measurements":[{"config":{` + known + `,"plan":"dp=8","framework":"a"},"outcome":"oom","source":"a","origin":"a"}],
			"measurements":[{"config":{` + known + `,"plan":"dp=8"},"outcome":"oom","source":"b"}]}`, 422, `repeated property","location":"body.measurements"`},
		{"/v1/predict", `null`, 422, "expected object"},
		{"/v1/predict", deep[:4000], 400, "more than 32 levels"},
		{"/v1/predict", strings.Repeat(" ", 5000), 413, "larger than 4096 bytes"},
		{"/v1/predict", `{` + known + `}`, 422, "expected required property plan"},
		{"/v1/predict", `{"model":"nosuch","accelerator":"h100","plan":"dp=8"}`, 404, `"body.model","value":"nosuch"`},
		{"/v1/predict", `{"model":"llama3-8b","accelerator":"nosuch","plan":"dp=8"}`, 404, `"body.accelerator","value":"nosuch"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","node":"nosuch"}`, 404, `"body.node","value":"nosuch"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","family":"nosuch"}`, 422, `"body.family","value":"nosuch"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","family":"rubick"}`, 422, `"body.family","value":"rubick"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","framework":"nosuch"}`, 422, `"body.framework","value":"nosuch"`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"framework":"nosuch"}`, 422, `"body.framework","value":"nosuch"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","framework":"FSDP@now"}`, 422, `want a version, such as 0.13, or a date`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","stack":["launch=eager","loss=fussed"]}`, 422, `"body.stack","value":"loss=fussed"`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"stack":["eager"]}`, 422, `"body.stack","value":"eager"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","stack":"launch=eager"}`, 422, `"body.stack"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","adapter":"lora"}`, 422, `"body.adapter","value":"lora"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","adapter":"lora:16","network":{"name":"x","param_count":1e9}}`, 422, `"body.adapter","value":"lora:16"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","date":"July"}`, 422, `"body.date","value":"July"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=-8"}`, 422, `"body.plan","value":"dp=-8"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=99999999999999999999"}`, 422, `dp=99999999999999999999 is not a whole number`},
		{"/v1/predict", `{` + known + `,"plan":"dp=1048576,tp=1048576"}`, 422, `devices, want at most`},
		{"/v1/predict", `{` + known + `,"plan":"tp=7"}`, 422, "tp=7 does not divide 32 heads"},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","devices":4}`, 422, `"body.devices","value":4`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","devices":-4}`, 422, `"body.devices","value":-4`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","shape":"3+3"}`, 422, `"body.shape","value":"3+3"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","shape":"8x"}`, 422, `"body.shape","value":"8x"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","seq":NaN}`, 400, `"body.seq"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","seq":1e999}`, 400, `"body.seq"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","seq":1e18}`, 422, `"body.seq","value":1000000000000000000`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","seq":0.5}`, 422, `"body.seq","value":0.5`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","seq":"many"}`, 422, `"body.seq","value":"many"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","imbalance":0.5}`, 422, `"body.imbalance"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","imbalance":1.5}`, 422, `imbalance=1.5 needs routed experts`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","inter_node_gbps":-1}`, 422, `"body.inter_node_gbps","value":-1`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","precision":"fp7"}`, 422, `"body.precision","value":"fp7"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","wrong":1}`, 422, `"body.wrong"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","network":{"name":"x","layers":-1,"hidden":8}}`, 422, `layers=-1 is negative`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","network":{"name":"x","kind":"decoder","layers":32,"hidden":4096,"ffn":14336,"heads":32,"vocab":32000,"seq_len":4096,"experts":8,"experts_per_token":2,"expert_ffn":1024,"moe_every":2}}`,
			422, `moe_every=2 of 32 layers needs dense_layers=16, not 0`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","device":{"name":"x","bf16_flops":1e14}}`, 422, `accelerator x: memory 0 B`},
		{"/v1/predict", `{"model":"llama3-8b","accelerator":"3xh100","plan":"dp=8"}`, 422, `names 3 devices, but the request is for 8 and a node has 8`},
		{"/v1/plan", `{"model":"llama3-8b","accelerator":"3xh100","devices":8,"global_batch":8}`, 422, `"body.accelerator","value":"3xh100"`},
		{"/v1/fit-check", `{"model":"llama3-8b","accelerator":"3xh100","devices":8,"global_batch":8}`, 422, `"body.accelerator","value":"3xh100"`},
		{"/v1/curve", `{"model":"llama3-8b","accelerator":"3xh100","max_devices":8,"global_batch":8}`, 422, `"body.accelerator","value":"3xh100"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","device":{"name":"H100-80GB-SXM","bf16_flops":1e14,"mem_bytes":1e11,"mem_bps":3e12}}`, 422, `"body.device","value":"H100-80GB-SXM"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","device":{"name":"x","bf16_flops":1e14,"mem_bytes":1e11,"mem_bps":3e12,"host_bps":-1}}`, 422, `host_bps of x: -1 is not in`},
		{"/v1/curve", `{"model":"llama3-8b","accelerator":"a,b","max_devices":8,"global_batch":8,"device":{"name":"x","bf16_flops":1e14,"mem_bytes":1e11,"mem_bps":3e12}}`, 422, `lists several types, but device describes one: give either`},
		{"/v1/predict", `{"model":"llama3-8b","accelerator":"a100-sxm","plan":"dp=8"}`, 404, `may be A100-40GB-SXM or A100-80GB-SXM`},
		{"/v1/plan", `{` + known + `,"devices":8}`, 422, `"body.global_batch","value":0`},
		{"/v1/plan", `{` + known + `,"devices":0,"global_batch":8}`, 422, `"body.devices","value":0`},
		{"/v1/plan", `{"model":"llama3.1-405b","accelerator":"h100","devices":8,"global_batch":8}`, 422, "the nearest"},
		{"/v1/curve", `{` + known + `,"max_devices":1e9,"global_batch":8}`, 422, `"body.max_devices","value":1000000000`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"zero":[4]}`, 422, `"body.zero[0]","value":4`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"zero":"0,1"}`, 422, `"body.zero","value":"0,1"`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"recompute":["some"]}`, 422, `"body.recompute[0]","value":"some"`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"precisions":["int8"]}`, 422, `"body.precisions","value":"int8"`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"precisions":["fp8"],"precision":"bf16"}`, 422, `"body.precisions","value":"fp8"`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"max_micro_batch":0}`, 422, `"body.max_micro_batch","value":0`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"emit":"nosuch"}`, 422, `"body.emit","value":"nosuch"`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"from":"dp=x","remaining":1}`, 422, `"body.from","value":"dp=x"`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"from":"dp=8"}`, 422, `needs remaining`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"from":"dp=8","remaining":1,"to":"dp=8,zero=3"}`, 422, `"body.from","value":"dp=8"`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"remaining":5}`, 422, `"body.remaining","value":5`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"in_place":true}`, 422, `"body.in_place","value":true`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"target":5,"target_samples_per_s":6}`, 422, `"body.target","value":5`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"target":5}`, 422, `target 5 goes with objective min-devices, and this one is throughput: change it, or leave target out","location":"body.target","value":5`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"objective":"cost","target_samples_per_s":5}`, 422, `"body.target_samples_per_s","value":5`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"noise_scale":500}`, 422, `"body.noise_scale","value":500`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"initial_batch":8}`, 422, `"body.initial_batch","value":8`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"objective":"min-devices"}`, 422, `objective \"min-devices\" needs target, how many`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"min_devices":9}`, 422, `min_devices 9 is not in 1..8`},
		{"/v1/curve", `{` + known + `,"max_devices":8,"global_batch":8,"noise_scale":500}`, 422, `"body.noise_scale","value":500`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8,zero=3,recompute=full","emit":"nosuch"}`, 422, `"body.emit","value":"nosuch"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8,zero=3,offload=params,recompute=full","emit":"megatron"}`, 422, `cannot express`},
		{"/v1/curve", `{` + known + `,"max_devices":8,"global_batch":8,"cpus":[0]}`, 422, `"body.cpus[0]","value":0`},
		{"/v1/curve", `{` + known + `,"max_devices":8,"global_batch":8,"host_gib":[-1]}`, 422, `"body.host_gib[0]","value":-1`},
		{"/v1/curve", `{` + known + `,"max_devices":8,"global_batch":8,"network_gbps":[100],"inter_node_gbps":400}`, 422, `"body.inter_node_gbps","value":400`},
		{"/v1/curve", `{` + known + `,"max_devices":65536,"global_batch":8,"cpus":[1,2]}`, 422, `"body.max_devices","value":65536`},
		{"/v1/curve", `{` + known + `,"max_devices":8,"global_batch":8,"objective":"cost"}`, 422, `"body.objective","value":"cost"`},
		{"/v1/curve", `{` + known + `,"max_devices":8,"objective":"goodput","min_batch":8,"max_batch":64}`, 422, `noise scale`},
		{"/v1/curve", `{` + known + `,"max_devices":8}`, 422, `"body.global_batch","value":0`},
		{"/v1/curve", `{"model":"llama3-8b","accelerator":"h100,,a100","max_devices":8,"global_batch":8}`, 422, `"body.accelerator","value":"h100,,a100"`},
		{"/v1/fit-check", `{` + known + `,"global_batch":8}`, 422, `"body.devices","value":0`},
		{"/v1/oracle/predict", `{"config":{"model":{"name":"x","param_count":-1},"plan":{"dp":1,"tp":1,"pp":1,"mb":1,"ga":1},"accelerator":{"name":"y"},"shape":{"devices":"1"},"link":{}}}`, 422, `"body.param_count","value":-1`},
		{"/v1/oracle/predict", `{"config":{"model":{"name":"x","param_count":1e9,"mtp_layers":-1},"plan":{"dp":1,"tp":1,"pp":1,"mb":1,"ga":1},"accelerator":{"name":"y"},"shape":{"devices":"1"},"link":{}}}`, 422, `"body.mtp_layers","value":-1`},
		{"/v1/oracle/predict", `{"config":{"model":{"name":"x","param_count":1e9,"kv_rank":67108865},"plan":{"dp":1,"tp":1,"pp":1,"mb":1,"ga":1},"accelerator":{"name":"y"},"shape":{"devices":"1"},"link":{}}}`, 422, `"body.kv_rank","value":67108865`},
		{"/v1/oracle/predict", `{"config":{"model":{"name":"x","param_count":1e9,"tower":{"projector":-1}},"plan":{"dp":1,"tp":1,"pp":1,"mb":1,"ga":1},"accelerator":{"name":"y"},"shape":{"devices":"1"},"link":{}}}`, 422, `"body.tower.projector","value":-1`},
		{"/v1/oracle/predict", `{"config":{"model":{"name":"x","param_count":1e9},"plan":{"dp":1,"tp":1,"pp":1,"mb":1,"ga":1},"accelerator":{"name":"y"},"shape":{"devices":"1","cpus":-1},"link":{}}}`, 422, `"body.cpus","value":-1`},
		{"/v1/oracle/predict", `{"config":{"model":{"name":"x","param_count":1e9},"plan":{"dp":1,"tp":1,"pp":1,"mb":1,"ga":1},"accelerator":{"name":"y","fp4_flops":2e21},"shape":{"devices":"1"},"link":{}}}`, 422, `"body.fp4_flops","value":2e+21`},
		{"/v1/oracle/predict", `{"config":{"model":{"name":"x","param_count":1e9},"plan":{"dp":1,"tp":1,"pp":1,"mb":1,"ga":1},"accelerator":{"name":"y","watts":-1},"shape":{"devices":"1"},"link":{}}}`, 422, `"body.watts","value":-1`},
		{"/v1/oracle/predict", `{"config":{"model":{"name":"x","param_count":1e9},"plan":{"dp":1,"tp":1,"pp":1,"mb":1,"ga":1},"accelerator":{"name":"y"},"shape":{"devices":"abc"},"link":{}}}`, 422, `"body.shape.devices","value":"abc"`},
		{"/v1/oracle/predict", `{"config":{"model":{"name":"x"},"plan":{"dp":-3,"tp":1,"pp":1,"mb":1,"ga":1},"accelerator":{"name":"y"},"shape":{"devices":"1"},"link":{}}}`, 422, `"body.config.plan"`},
		{"/v1/oracle/predict", `{"config":{"model":{"name":"x"},"plan":{"dp":1,"tp":1,"pp":1,"mb":1,"ga":1},"accelerator":{"name":"y"},"shape":{"devices":"1"},"link":{}}}`, 422, "not-covered"},
		{"/v1/oracle/best", `{"request":{"model":{"name":"x","param_count":1e9},"accelerator":{"name":"y"},"devices":-1,"global_batch":8}}`, 422, "-1 devices"},
		{"/v1/measurements", `{"measurements":[]}`, 422, "body.measurements"},
		{"/v1/fit", `{"models":["nosuch"]}`, 422, "nosuch"},
		{"/v1/fit", `{"family":"nosuch"}`, 422, `"body.family","value":"nosuch"`},
	} {
		w := do(s, http.MethodPost, c.path, c.body)
		var p huma.ErrorModel
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %.100s: %d %s %v", c.path, c.body, w.Code, w.Body, err)
			continue
		}
		if w.Code != c.status || p.Status != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %.100s: %d %s, want %d with %s", c.path, c.body, w.Code, w.Body, c.status, c.says)
		}
		if w.Body.Len() > 8192 {
			t.Errorf("%s %.100s: an answer of %d bytes", c.path, c.body, w.Body.Len())
		}
	}
	if n := panicsOf(s); n != 0 {
		t.Errorf("%g panics", n)
	}
}

// seedPaths and seedBodies are requests with an answer. The tests below spoil them.
var (
	seedPaths = []string{"/v1/predict", "/v1/predict/batch", "/v1/plan", "/v1/curve", "/v1/fit-check", "/v1/measurements", "/v1/fit",
		"/v1/oracle/predict", "/v1/oracle/best", "/v1/oracle/rank", "/v1/oracle/curve"}
	seedBodies = []string{
		`{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,tp=2,mb=1,zero=1","seq":2048,"global_batch":8}`,
		`{"questions":[{"model":"llama3-8b","accelerator":"h100","plan":"dp=8"}]}`,
		`{"model":"llama3-8b","accelerator":"h100","devices":2,"global_batch":2,"top":1,"explain":true,"emit":"megatron","from":"dp=2,zero=3","remaining":10,"restart_s":1,"storage_gbytes":1,"in_place":true,"zero":[3],"recompute":["full"],"offload":["none"],"schedule":["1f1b"],"precisions":["bf16"],"max_micro_batch":1,"tp_across_nodes":true}`,
		`{"model":"llama3-8b","accelerator":"h100","max_devices":2,"global_batch":2,"objective":"throughput","risk":0.1,"zero":[3],"cpus":[1],"host_gib":[64],"network_gbps":[100]}`,
		`{"model":"llama3-8b","accelerator":"h100","devices":2,"global_batch":2}`,
		`{"measurements":[{"config":{"model":{"name":"m"},"plan":{"dp":1,"tp":1,"pp":1,"mb":1,"ga":1},"accelerator":{"name":"a"},"shape":{"devices":"1"},"link":{}},"outcome":"ok","step_sec":[1],"source":"s"}]}`,
		`{"models":["m"]}`,
		`{"config":{"model":{"name":"x","param_count":1e9,"seq_len":8},"plan":{"dp":1,"tp":1,"pp":1,"mb":1,"ga":1},"accelerator":{"name":"y","fp16_flops":1e14,"mem_bytes":1e10,"mem_bps":1e12},"shape":{"devices":"1"},"link":{}}}`,
		`{"request":{"model":{"name":"x","kind":"decoder","layers":2,"hidden":8,"heads":2,"ffn":16,"vocab":10,"seq_len":8},"accelerator":{"name":"y","fp16_flops":1e14,"mem_bytes":1e10,"mem_bps":1e12},"devices":2,"global_batch":2}}`,
	}
)

// Requests with one odd value each have status 200, 4xx or a timeout, and never
// panic.
func TestOddValues(t *testing.T) {
	s := newServer(t, Options{Timeout: 100 * time.Millisecond, FitTimeout: 100 * time.Millisecond})
	odd := []any{nil, true, "", "x", strings.Repeat("9", 400), 0, -1, 0.5, 7, 1 << 20, 1<<31 - 1, 1 << 40, 1<<62 + 1, -1 << 62, 1e-300, 1e300, []any{}, map[string]any{}, []any{1, "x", nil}}
	n := 0
	for i, path := range seedPaths {
		body := seedBodies[min(i, len(seedBodies)-1)]
		var v any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatal(err)
		}
		replaceEach(v, func(set func(any)) {
			for _, o := range odd {
				set(o)
				n++
				spoilt := bodyOf(t, v)
				w := do(s, http.MethodPost, path, spoilt)
				if w.Code != http.StatusOK && w.Code != http.StatusServiceUnavailable && (w.Code < 400 || w.Code >= 500) || !json.Valid(w.Body.Bytes()) {
					t.Errorf("%s %.300s: %d %s", path, spoilt, w.Code, w.Body)
				}
			}
		})
	}
	if n < 1000 || panicsOf(s) != 0 {
		t.Errorf("%d questions, %g panics", n, panicsOf(s))
	}
}

// replaceEach calls use with a setter of every value within v, and restores the value
// afterwards.
func replaceEach(v any, use func(set func(any))) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			old := v[k]
			use(func(o any) { v[k] = o })
			v[k] = old
			replaceEach(old, use)
		}
	case []any:
		for i, old := range v {
			use(func(o any) { v[i] = o })
			v[i] = old
			replaceEach(old, use)
		}
	}
}

// Any body has status 200, 4xx or a timeout, and never panics.
func FuzzHandlers(f *testing.F) {
	s := newServer(f, Options{MaxBody: 1 << 16, Timeout: 2e9, FitTimeout: 2e9})
	for i, body := range seedBodies {
		f.Add(uint8(i), body)
	}
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		path := seedPaths[int(which)%len(seedPaths)]
		w := do(s, http.MethodPost, path, body)
		switch {
		case w.Code == http.StatusOK, w.Code >= 400 && w.Code < 500, w.Code == http.StatusServiceUnavailable:
		default:
			t.Errorf("%s %q: %d %s", path, body, w.Code, w.Body)
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %q: %s is no JSON", path, body, w.Body)
		}
		if n := panicsOf(s); n != 0 {
			t.Errorf("%s %q: a panic", path, body)
		}
	})
}
