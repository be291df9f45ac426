package spec

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func goodMeasurement() Measurement {
	return Measurement{Config: Config{Model: Model{Name: "m"}, Accelerator: Accelerator{Name: "a"}, Plan: Plan{DP: 2}},
		Outcome: OK, StepSec: []float64{1}, Source: "test"}
}

func TestMeasurementValidate(t *testing.T) {
	if err := goodMeasurement().Validate(); err != nil {
		t.Error(err)
	}
	illegal := goodMeasurement()
	illegal.Config.Model.Heads, illegal.Config.Plan.TP = 12, 16
	if err := illegal.Validate(); err != nil {
		t.Errorf("a plan that breaks a rule: %v, want it kept", err)
	}
	for want, change := range map[string]func(*Measurement){
		"model name":       func(m *Measurement) { m.Config.Model.Name = "" },
		"accelerator name": func(m *Measurement) { m.Config.Accelerator.Name = "" },
		"source":           func(m *Measurement) { m.Source = "" },
		"outcome":          func(m *Measurement) { m.Outcome = "fine" },
		"needs a step":     func(m *Measurement) { m.StepSec = nil },
		"step time 0":      func(m *Measurement) { m.StepSec = []float64{0} },
		"step time NaN":    func(m *Measurement) { m.StepSec = []float64{math.NaN()} },
		"peak memory":      func(m *Measurement) { m.PeakBytes = -1 },
	} {
		m := goodMeasurement()
		change(&m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestJobValidate(t *testing.T) {
	good := Job{ID: "1", Devices: 2, Steps: 10}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Job){
		"no id":          func(j *Job) { j.ID = "" },
		"no devices":     func(j *Job) { j.Devices = 0 },
		"NaN steps":      func(j *Job) { j.Steps = math.NaN() },
		"endless":        func(j *Job) { j.Steps = math.Inf(1) },
		"negative steps": func(j *Job) { j.Steps = -1 },
		"no work":        func(j *Job) { j.Steps = 0 },
		"NaN epochs":     func(j *Job) { j.Epochs = math.NaN() },
		"NaN weight":     func(j *Job) { j.Weight = math.NaN() },
		"early":          func(j *Job) { j.Submit = -1 },
		"deadline":       func(j *Job) { j.Deadline = -1 },
		"batch":          func(j *Job) { j.GlobalBatch = -1 },
	} {
		j := good
		change(&j)
		if err := j.Validate(); err == nil || !strings.HasPrefix(err.Error(), "spec: job") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// fill sets every field of v, at any depth, to a non-zero value.
func fill(t *testing.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int:
		v.SetInt(3)
	case reflect.Float64:
		v.SetFloat(0.1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 5).UTC()))
			return
		}
		if v.Type() == reflect.TypeFor[Adapter]() { // has a text form, which not every value has
			v.Set(reflect.ValueOf(Adapter{LoRA, 3, AdaptMLP}))
			return
		}
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0))
		fill(t, v.Index(1))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key)
		fill(t, value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	default:
		t.Fatalf("no value for a %s", v.Type())
	}
}

// TestMeasurementJSONKeepsEveryField: a field without a JSON name, or with the name of another field, would be
// lost. Measured of the accelerator is not a part of the row.
func TestMeasurementJSONKeepsEveryField(t *testing.T) {
	var full, again, none Measurement
	fill(t, reflect.ValueOf(&full).Elem())
	full.Config.Accelerator.Measured = ""
	for _, m := range []Measurement{full, {}} {
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		again = none
		if err := json.Unmarshal(b, &again); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(again, m) {
			t.Errorf("%+v came back as %+v", m, again)
		}
	}
}

// TestHalfWidth: half the logarithm of Hi/Lo; predictions without a finite interval have none.
func TestHalfWidth(t *testing.T) {
	for _, c := range []struct{ lo, hi, want float64 }{
		{1, math.Exp(2), 1}, {0, 0, 0}, {0, 5, 0}, {5, 5, 0}, {5, 4, 0}, {1, math.Inf(1), 0}, {math.NaN(), 1, 0},
	} {
		p := Prediction{Throughput: 3, Lo: c.lo, Hi: c.hi}
		if got := p.HalfWidth(); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("half width of [%g, %g] is %g, want %g", c.lo, c.hi, got, c.want)
		}
	}
}

// TestImpossible: rows faster than the devices, and with more memory than they have, are doubted; 60 % of the peak and sizes
// in GB are not.
func TestImpossible(t *testing.T) {
	m := Measurement{Outcome: OK, Config: Config{
		Model:       Model{Name: "m", Kind: Decoder, Layers: 24, Hidden: 2048, FFN: 8192, Heads: 16, Vocab: 50257, SeqLen: 2048},
		Accelerator: Accelerator{Name: "a", BF16: 300e12, MemBytes: 80e9},
		Plan:        Plan{DP: 8, MicroBatch: 4, Precision: BF16}.Normal(),
	}}
	least := m.Config.Model.TrainFLOPs(2048) * 32 / (8 * 300e12)
	for what, c := range map[string]struct {
		change func(m *Measurement)
		want   string
	}{
		"good":             {func(m *Measurement) { m.StepSec = []float64{least / 0.6} }, ""},
		"at the peak":      {func(m *Measurement) { m.StepSec = []float64{least * 1.001} }, ""},
		"ten times faster": {func(m *Measurement) { m.StepSec = []float64{least / 10} }, "10 times the devices' peak rate"},
		"most runs faster": {func(m *Measurement) { m.StepSec = []float64{least * 2, least / 2, least / 2} }, "2 times the devices' peak rate"},
		"half the devices": {func(m *Measurement) { m.StepSec, m.Config.Shape = []float64{least * 1.5}, NewShape(4) }, "1.33 times the devices' peak rate"},
		"peak unknown":     {func(m *Measurement) { m.StepSec, m.Config.Accelerator.BF16 = []float64{least / 10}, 0 }, ""},
		"length unknown":   {func(m *Measurement) { m.StepSec, m.Config.Model.SeqLen = []float64{least / 10}, 0 }, ""},
		"memory":           {func(m *Measurement) { m.PeakBytes = 90e9 }, "a peak of 83.82 GiB on devices of 74.51 GiB"},
		"memory in GB":     {func(m *Measurement) { m.PeakBytes = 80 << 30 }, ""},
		"out of memory":    {func(m *Measurement) { m.PeakBytes, m.Outcome = 90e9, OOM }, ""},
		"own reason":       {func(m *Measurement) { m.PeakBytes, m.Doubt = 90e9, "shared devices" }, "shared devices"},
	} {
		row := m
		c.change(&row)
		if got := row.DoubtReason(); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
