package worker

import (
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

const goodResult = `{"version":1,"outcome":"ok","rank":0,"world":2,"parameters":1000,"python":"3.11.2","torch":"2.6.0",
"cuda":"","device_name":"cpu","threads":1,"features":{"ddp":true},"notes":{"attention":"sdpa"},"setup_s":0.1,
"warmup_sec":[0.3,0.2],"warmup_stopped":"steady","step_sec":[0.2,0.25,0.21],"stopped":"interval","half_width":0.01,
"began":1700000000.5,"ended":1700000001.25,"phase_sec":{"forward":0.1,"other":0.11},"peak_bytes":1e9,
"reserved_bytes":2e9,"loss_first":7,"loss_last":6}`

func TestParseResult(t *testing.T) {
	r, err := ParseResult([]byte(goodResult))
	if err != nil {
		t.Fatal(err)
	}
	began, ended := r.Timed()
	if r.World != 2 || len(r.StepSec) != 3 || r.PeakBytes != 1e9 || r.Notes["attention"] != "sdpa" ||
		began.UnixMilli() != 1700000000500 || ended.Sub(began).Milliseconds() != 750 {
		t.Errorf("%+v, %v to %v", r, began, ended)
	}
	if _, err := ParseResult([]byte(goodResult + "\n")); err != nil {
		t.Error(err)
	}
}

// with returns goodResult with one field replaced.
func with(t *testing.T, field, value string) string {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(goodResult), &all); err != nil {
		t.Fatal(err)
	}
	all[field] = json.RawMessage(value)
	out := "{"
	for k, v := range maps.All(all) {
		out += `"` + k + `":` + string(v) + ","
	}
	return out[:len(out)-1] + "}"
}

func TestParseResultBad(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "empty"},
		{"garbage", "hello", "not a result in JSON"},
		{"null", "null", "version 0"},
		{"list", "[1]", "not a result in JSON"},
		{"truncated", goodResult[:len(goodResult)/2], "truncated"},
		{"two results", goodResult + goodResult, "bytes after the end"},
		{"garbage behind", goodResult + "x", "1 bytes after the end"},
		{"huge", `{"reason":"` + strings.Repeat("x", maxResultBytes) + `"}`, "more than"},
		{"version", with(t, "version", "2"), "version 2, want 1"},
		{"outcome", with(t, "outcome", `"fine"`), `"fine"`},
		{"timeout", with(t, "outcome", `"timeout"`), `"timeout"`},
		{"no reason", with(t, "outcome", `"oom"`), "without a reason"},
		{"NaN", with(t, "step_sec", "[NaN]"), "not a result in JSON"},
		{"text for a number", with(t, "peak_bytes", `"1"`), "peak_bytes"},
		{"negative step", with(t, "step_sec", "[0.1,-1]"), "step_sec[1]=-1"},
		{"zero step", with(t, "step_sec", "[0]"), "step_sec[0]=0"},
		{"endless step", with(t, "step_sec", "[1e300]"), "step_sec[0]=1e+300"},
		{"no steps", with(t, "step_sec", "[]"), "without a timed step"},
		{"too many steps", with(t, "step_sec", "["+strings.Repeat("1,", maxSteps)+"1]"), "steps, want at most"},
		{"warm-up", with(t, "warmup_sec", "[-3]"), "warmup_sec[0]=-3"},
		{"phase", with(t, "phase_sec", `{"forward":-0.1}`), "phase_sec[forward]=-0.1"},
		{"peak", with(t, "peak_bytes", "-1"), "peak_bytes=-1"},
		{"absurd peak", with(t, "peak_bytes", "1e18"), "peak_bytes=1e+18"},
		{"reserved", with(t, "reserved_bytes", "1e300"), "reserved_bytes"},
		{"parameters", with(t, "parameters", "-5"), "parameters=-5"},
		{"world", with(t, "world", "0"), "world of 0"},
		{"rank", with(t, "rank", "3"), "from rank 3"},
		{"order", with(t, "ended", "1"), "to 1"},
		{"why stopped", with(t, "stopped", `""`), "why steps stopped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := ParseResult([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if len(r.StepSec) > 0 {
				t.Error("a bad result is not empty")
			}
		})
	}
}

func FuzzParseResult(f *testing.F) {
	f.Add([]byte(goodResult))
	f.Add([]byte(`{"version":1,"outcome":"oom","reason":"x","step_sec":[1e308]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ParseResult(text)
		if err != nil {
			return
		}
		m := spec.Measurement{Outcome: r.Outcome, StepSec: r.StepSec, PeakBytes: r.PeakBytes, Source: "s"}
		m.Config.Model.Name, m.Config.Accelerator.Name = "m", "a"
		if err := m.Validate(); err != nil {
			t.Errorf("a result that was read does not fit a measurement: %v", err)
		}
	})
}

func TestReadResult(t *testing.T) {
	oom := `{"version":1,"outcome":"oom","reason":"no memory","rank":1,"failed_at":20}`
	early := `{"version":1,"outcome":"failed","reason":"first","rank":3,"failed_at":5}`
	late := `{"version":1,"outcome":"failed","reason":"second","rank":0,"failed_at":9}`
	lost := `{"version":1,"outcome":"failed","reason":"closed by peer","rank":2,"failed_at":1,"lost_peer":true}`
	for _, c := range []struct {
		name    string
		files   map[string]string
		outcome spec.Outcome
		want    string // reason, or part of the error
	}{
		{"none", nil, "", "no result"},
		{"good", map[string]string{"r": goodResult}, spec.OK, ""},
		{"failed on one rank", map[string]string{"r": goodResult, "r.rank3": early}, spec.Failed, "first"},
		{"the earliest", map[string]string{"r.rank0": late, "r.rank3": early}, spec.Failed, "first"},
		{"a lost peer comes last", map[string]string{"r.rank0": late, "r.rank2": lost}, spec.Failed, "second"},
		{"lost peers only", map[string]string{"r.rank2": lost}, spec.Failed, "closed by peer"},
		{"oom comes first", map[string]string{"r.rank0": late, "r.rank1": oom, "r.rank3": early}, spec.OOM, "no memory"},
		{"oom beats garbage", map[string]string{"r.rank1": oom, "r.rank2": "{"}, spec.OOM, "no memory"},
		{"garbage of a rank", map[string]string{"r": goodResult, "r.rank2": "{"}, "", "r.rank2: truncated"},
		{"ok of a rank", map[string]string{"r.rank0": goodResult}, "", "outcome ok in the file of a failure"},
		{"garbage", map[string]string{"r": "x"}, "", "r: not a result in JSON"},
		{"others", map[string]string{"r": goodResult, ".result-x": "{", "q.rank0": late}, spec.OK, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.files {
				spectest.WriteFile(t, filepath.Join(dir, name), []byte(text), 0o600)
			}
			r, err := ReadResult(filepath.Join(dir, "r"))
			if c.outcome == "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "worker: ") {
					t.Errorf("error %v, want %q", err, c.want)
				}
				if errors.Is(err, ErrNoResult) != (c.files == nil) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || r.Outcome != c.outcome || r.Reason != c.want {
				t.Errorf("outcome %s, reason %q, error %v", r.Outcome, r.Reason, err)
			}
		})
	}
	if _, err := ReadResult(filepath.Join(t.TempDir(), "none", "r")); err == nil {
		t.Error("read from a directory that is not there")
	}
}
