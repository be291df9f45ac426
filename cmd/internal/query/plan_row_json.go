package query

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"strconv"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// AppendJSON appends the JSON of r to b, the same bytes as of package function AppendJSON, which takes several times as
// long. head is from AppendHead, for all rows of a plan.
func (r *PlanRow) AppendJSON(b, head []byte) (_ []byte, err error) {
	w := jsonWriter{b: append(b, head...)}
	w.number(`,"step_time_s":`, r.StepTimeSec)
	w.number(`,"step_time_lo_s":`, r.StepTimeLo)
	w.number(`,"step_time_hi_s":`, r.StepTimeHi)
	samples := w.number(`,"samples_per_s":`, r.SamplesPerS)
	w.number(`,"mem_gib":`, r.MemGiB)
	w.known(`,"mem_allocated_gib":`, r.AllocatedGiB)
	w.known(`,"mem_reserved_gib":`, r.ReservedGiB)
	w.b = strconv.AppendBool(append(w.b, `,"fits":`...), r.Fits)
	w.number(`,"tflops_per_gpu":`, r.TFLOPsPerGPU)
	w.b = strconv.AppendInt(append(w.b, `,"devices":`...), int64(r.Devices), 10)
	w.b = strconv.AppendInt(append(w.b, `,"global_batch":`...), int64(r.GlobalBatch), 10)
	w.number(`,"cost_per_sample":`, r.CostPerSample)
	w.again(`,"goodput_samples_per_s":`, r.GoodputPerS, samples)
	w.text(`,"shape":`, r.Shape)
	w.text(`,"by":`, r.By)
	if r.PBeatsBest != nil {
		w.number(`,"p_beats_best":`, *r.PBeatsBest)
	}
	if r.Why != "" {
		w.text(`,"why":`, r.Why)
	}
	w.text(`,"verdict":`, r.Verdict)
	w.texts(`,"warnings":`, r.Warnings)
	mfu := w.known(`,"mfu":`, r.MFU)
	if r.HFU != 0 {
		w.again(`,"hfu":`, r.HFU, mfu)
	}
	w.known(`,"tokens_per_s_per_device":`, r.TokensPerDevice)
	w.known(`,"energy_j_per_sample":`, r.JoulesPerSample)
	if r.Explain != nil {
		w.any(`,"explain":`, r.Explain)
	}
	return append(w.b, '}'), w.err
}

// AppendJSON appends the JSON of p to b, the same bytes as of package function AppendJSON.
func (p Plans) AppendJSON(b []byte) (_ []byte, err error) {
	if p.Plans == nil || len(p.Pareto) > 0 || len(p.Probes) > 0 || p.Move != nil || p.Launch != nil || p.Infeasible != nil {
		return AppendJSON(b, p)
	}
	b = append(b, `{"plans":[`...)
	var head []byte
	for i := range p.Plans {
		if i > 0 {
			b = append(b, ',')
		}
		row := &p.Plans[i]
		head = AppendHead(head[:0], &row.PlanParts)
		if b, err = row.AppendJSON(b, head); err != nil {
			return b, err
		}
	}
	return AppendPlansEnd(b, p.Evaluated, p.Fitting, p.ElapsedS)
}

// AppendPlansEnd appends what follows the rows in the JSON of Plans.
func AppendPlansEnd(b []byte, evaluated, fitting int, elapsed float64) ([]byte, error) {
	w := jsonWriter{b: append(b, ']')}
	w.b = strconv.AppendInt(append(w.b, `,"evaluated":`...), int64(evaluated), 10)
	w.b = strconv.AppendInt(append(w.b, `,"fitting":`...), int64(fitting), 10)
	w.number(`,"elapsed_s":`, elapsed)
	return append(w.b, '}'), w.err
}

// AppendHead appends the beginning of the JSON of a PlanRow with a normal plan.
func AppendHead(b []byte, p *spec.Plan) []byte {
	w := jsonWriter{b: b}
	w.text(`{"plan":`, p.String())
	count := func(before string, n int) {
		if n != 0 {
			w.b = strconv.AppendInt(append(w.b, before...), int64(n), 10)
		}
	}
	word := func(before, s string) {
		if s != "" {
			w.text(before, s)
		}
	}
	flag := func(text string, on bool) {
		if on {
			w.b = append(w.b, text...)
		}
	}
	w.b = strconv.AppendInt(append(w.b, `,"plan_parts":{"dp":`...), int64(p.DP), 10)
	w.b = strconv.AppendInt(append(w.b, `,"tp":`...), int64(p.TP), 10)
	w.b = strconv.AppendInt(append(w.b, `,"pp":`...), int64(p.PP), 10)
	count(`,"cp":`, p.CP)
	count(`,"ep":`, p.EP)
	count(`,"vp":`, p.VirtualStages)
	word(`,"schedule":`, string(p.Schedule))
	count(`,"ps":`, p.ParamServers)
	flag(`,"async":true`, p.Async)
	w.b = strconv.AppendInt(append(w.b, `,"mb":`...), int64(p.MicroBatch), 10)
	w.b = strconv.AppendInt(append(w.b, `,"ga":`...), int64(p.AccumSteps), 10)
	count(`,"zero":`, p.ZeRO)
	count(`,"shard":`, p.Shard)
	word(`,"offload":`, string(p.Offload))
	word(`,"recompute":`, string(p.Recompute))
	flag(`,"sp":true`, p.SequenceParallel)
	word(`,"precision":`, string(p.Precision))
	return append(w.b, '}')
}

// jsonWriter appends fields, each with the text before its value.
type jsonWriter struct {
	b   []byte
	err error // the first
}

// written is a number and its text in jsonWriter.b; the zero value is none.
type written struct {
	v        float64
	from, to int
}

func (w *jsonWriter) number(before string, v float64) written {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		w.any(before, v) // is an error
		return written{}
	}
	w.b = append(w.b, before...)
	from := len(w.b)
	w.b = AppendNumber(w.b, v)
	return written{v, from, len(w.b)}
}

// again is number for what is mostly equal to last, which it copies. 0 is equal to -0 and has another text.
func (w *jsonWriter) again(before string, v float64, last written) {
	if v == 0 || v != last.v {
		w.number(before, v)
		return
	}
	w.b = append(w.b, before...)
	w.b = append(w.b, w.b[last.from:last.to]...)
}

// AppendNumber appends v, which is finite, as encoding/json writes it.
func AppendNumber(b []byte, v float64) []byte {
	if abs := math.Abs(v); abs != 0 && abs < 1e-6 || abs >= 1e21 {
		text, _ := json.Marshal(v)
		return append(b, text...)
	}
	return strconv.AppendFloat(b, v, 'f', -1, 64)
}

// known is number for a figure that is left out where it is 0.
func (w *jsonWriter) known(before string, v float64) (last written) {
	if v != 0 {
		last = w.number(before, v)
	}
	return last
}

func (w *jsonWriter) text(before, s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			w.any(before, s)
			return
		}
	}
	w.b = append(append(append(append(w.b, before...), '"'), s...), '"')
}

func (w *jsonWriter) texts(before string, all []string) {
	if all == nil {
		w.any(before, all)
		return
	}
	w.b = append(append(w.b, before...), '[')
	for i, s := range all {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.text("", s)
	}
	w.b = append(w.b, ']')
}

func (w *jsonWriter) any(before string, v any) {
	b, err := AppendJSON(append(w.b, before...), v)
	w.b, w.err = b, cmp.Or(w.err, err)
}

// AppendJSON appends the JSON of v to b, without escapes for HTML. After an error it returns b.
func AppendJSON(b []byte, v any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return b, err
	}
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...), nil
}
