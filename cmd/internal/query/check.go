package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/launch"
	"github.com/pacer-ml/pacer/planner/launch/recipe"
)

// quantile95 is the 95 % quantile of the normal distribution.
const quantile95 = 1.6448536269514722

// usualVocab is assumed where a file has neither vocabulary nor tokenizer: that of GPT-2, padded as Megatron-LM does.
const usualVocab = 50304

// unknownTime and unknownMemory are what a key that is not known may do: standard deviations of the logarithms of step
// time and memory, at most unknownMost together.
const (
	unknownTime, unknownMemory = 0.03, 0.03
	unknownMost                = 0.15
)

// checker answers one CheckRequest.
type checker struct {
	r    *Resolver
	q    CheckRequest
	file *recipe.Recipe
	out  *Check

	found    Resolved
	written  spec.Plan // as the file says it; found has the number format of the device
	onTarget bool      // the file is checked on the accelerator that it is ported to
	planner  *planner.Planner
	report   planner.FitReport
	timeSD   float64
	memorySD float64
	share    float64 // of the layers that recompute fully, 0 = all or none
	// optimizer is the part of the training stack that the file states by its optimizer, "" = none.
	optimizer string
}

// optimizerPart returns the part of a training stack that an optimizer is, by its name, "" = none.
func optimizerPart(name string) string {
	switch name = strings.ToLower(name); {
	case strings.Contains(name, "galore"): // keeps states of low rank
		return ""
	case strings.Contains(name, "adam") && strings.Contains(name, "8bit"):
		return "optimizer=" + stack.Adam8
	case strings.Contains(name, "adafactor"):
		return "optimizer=" + stack.Adafactor
	}
	return ""
}

// start copies what was read.
func (c *checker) start() {
	f := c.file
	c.out = &Check{Format: f.Format, Understood: f.Given(), Unknown: OrEmpty(f.Unknown), Ignored: OrEmpty(f.Ignored), Assumed: OrEmpty(f.Assumed), Problems: OrEmpty(f.Problems),
		Unset: OrEmpty(f.Unset), Uncounted: []UncountedKey{}, Changes: []Change{}}
	var time, mem float64
	for _, u := range f.Uncounted {
		if part := optimizerPart(u.Value); u.Key == "optimizer" && part != "" && !strings.Contains(c.q.Stack, "optimizer=") {
			c.optimizer = part
			continue
		}
		c.out.Uncounted = append(c.out.Uncounted, UncountedKey{u.Key, u.Value, u.Why})
		time, mem = time+u.Time*u.Time, mem+u.Memory*u.Memory
	}
	n := math.Sqrt(float64(len(f.Unknown)))
	t, m := min(unknownTime*n, unknownMost), min(unknownMemory*n, unknownMost)
	c.timeSD, c.memorySD = math.Sqrt(time+t*t), math.Sqrt(mem+m*m)
}

func (c *checker) assume(notes ...string) { c.out.Assumed = append(c.out.Assumed, notes...) }

// resolve finds model, accelerator and plan. Without a legal plan c.found has none.
func (c *checker) resolve(ctx context.Context) error {
	q := &c.q
	if err := c.model(); err != nil {
		return err
	}
	if q.Accelerator == "" && q.Chip == (Chip{}) {
		q.Accelerator, c.onTarget = q.To, true
	}
	if q.Accelerator == "" && q.Chip == (Chip{}) {
		return &FieldError{Field: "accelerator", Value: "", Why: "is missing: the file does not say which devices it is for"}
	}
	devices, ok := c.file.Number(recipe.Devices)
	if q.Devices > 0 {
		if ok && devices != q.Devices {
			c.assume(fmt.Sprintf("%d devices in place of the %d of the file", q.Devices, devices))
		}
		devices = q.Devices
	} else if !ok {
		return &FieldError{Field: "devices", Value: "", Why: "is missing: the file does not say how many devices it is for, such as 8"}
	}
	if q.Seq == 0 {
		q.Seq = c.file.Samples()
	}
	if q.Adapter == "" {
		q.Adapter = c.file.AdapterText()
	}
	bare := q.Request // its training stack is that of the measurements
	bare.Stack, bare.Date = "", ""
	found, err := c.r.Resolve(ctx, bare)
	if name := c.file.Stack(); err == nil && found.Framework == "" && name != "" {
		q.Framework = name
		c.assume("the training stack is " + name + ", by the file")
	}
	if c.optimizer != "" {
		q.Stack = strings.TrimSpace(q.Stack + " " + c.optimizer)
		c.assume("the training stack has " + c.optimizer + ", by the file")
	}
	if err == nil && (q.Framework != bare.Framework || q.Stack != "" || q.Date != "") {
		found, err = c.r.Resolve(ctx, q.Request)
	}
	if err != nil {
		return err
	}
	c.file.SetLayers(found.Model.Layers)
	plan, notes, err := c.file.Plan(devices)
	c.assume(notes...)
	if err != nil {
		c.illegal(err)
		return nil
	}
	c.share = c.file.RecomputedShare(&plan)
	if q.GlobalBatch > 0 && q.GlobalBatch != plan.GlobalBatch() {
		if q.GlobalBatch%(plan.DP*plan.MicroBatch) != 0 {
			return &FieldError{Field: "global_batch", Value: q.GlobalBatch, Why: fmt.Sprintf("is not a multiple of dp=%d x micro-batch %d", plan.DP, plan.MicroBatch)}
		}
		plan.AccumSteps = q.GlobalBatch / (plan.DP * plan.MicroBatch)
	}
	if why := planner.CannotOffload(&plan); why != "" {
		c.illegal(errors.New(why))
		return nil
	}
	c.planner = planner.New(found.Predictor, planner.Options{})
	q.GlobalBatch, c.written = 0, plan
	if q.Precision != "" {
		plan.Precision = spec.Precision(q.Precision)
	}
	if err := CheckPrecision(plan.Precision, found.Accelerator); err != nil && plan.Precision != "" {
		if !c.onTarget {
			return &FieldError{Field: "precision", Value: plan.Precision, NoAnswer: true, Err: fmt.Errorf("%w: port the file to %s, which sets another format", err, found.Accelerator.Name)}
		}
		plan.Precision = found.Accelerator.DefaultPrecision()
		c.assume(fmt.Sprintf("%v: %s takes the place of %s", err, plan.Precision, c.written.Precision))
	}
	if !c.onTarget {
		c.out.Problems = append(c.out.Problems, c.file.Lacks(found.Accelerator)...)
	}
	if err := found.Fix(&q.Request, FixedPlan{Plan: plan.String(), Devices: devices}); err != nil {
		return err
	}
	c.found = found
	return nil
}

// illegal records why the plan of the file is illegal.
func (c *checker) illegal(err error) {
	text := err.Error()
	if _, why, ok := strings.Cut(text, planner.ErrInfeasible.Error()+": "); ok {
		text = why
	}
	for _, prefix := range []string{"recipe: " + c.q.File + ": ", "spec: ", "planner: ", c.found.Model.Name + ": "} {
		text = strings.TrimPrefix(text, prefix)
	}
	if !slices.Contains(c.out.Problems, text) {
		c.out.Problems = append(c.out.Problems, text)
	}
	c.out.Verdict = "illegal"
}

// model sets the model of the request: that of the request, else the one that the file describes or names.
func (c *checker) model() error {
	q := &c.q
	if q.Model != "" || q.custom() {
		c.out.Model = q.Model
		return nil
	}
	vocab := usualVocab
	if known, err := catalog.ModelOnHub(c.file.Tokenizer()); err == nil && known.Vocab > 0 {
		vocab = known.Vocab
	}
	if m, notes, ok := c.file.Network(vocab); ok {
		if len(notes) > 0 {
			c.memorySD, c.timeSD = math.Hypot(c.memorySD, 0.02), math.Hypot(c.timeSD, 0.02)
		}
		c.assume(notes...)
		if err := m.Validate(); err != nil {
			return &FieldError{Field: "file", Value: q.File, Err: err}
		}
		if m.SeqLen == 0 && q.Seq == 0 {
			return &FieldError{Field: "seq", Value: "", Why: "is missing: the file does not say how many tokens a sample has"}
		}
		q.Network, c.out.Model, c.out.Network = m, m.Name, &m
		return nil
	}
	name := c.file.Text(recipe.ModelName)
	if name == "" {
		return &FieldError{Field: "model", Value: "", Why: "is missing: the file does not say which network is trained"}
	}
	known, err := modelNamed(name)
	if assets := path.Base(c.file.Tokenizer()); err != nil && sizeInName.MatchString(assets) && strings.Contains(strings.ToLower(name), strings.ToLower(sizeInName.FindString(assets))) {
		if known, err = modelNamed(assets); err == nil {
			c.assume(fmt.Sprintf("the network of %q is that of %s: the file has its tokenizer", name, known.Name))
		}
	}
	if err != nil {
		return &FieldError{Field: "model", Value: name, Why: "of the file is not in the catalog: give {model}, by another name or as config.json"}
	}
	q.Model, c.out.Model = known.Name, known.Name
	return nil
}

// otherNames are torchtitan's and MaxText's names of models, those of Llama 2's children, and names on the Hub that say no
// size.
var otherNames = map[string]string{
	"llama4/17bx16e": "Llama4-Scout", "llama4/17bx128e": "Llama4-Maverick", "llama4-17b-16e": "Llama4-Scout", "llama4-17b-128e": "Llama4-Maverick",
	"deepseek2-16b": "DeepSeek-V2-Lite", "deepseek2-236b": "DeepSeek-V2", "deepseek3-671b": "DeepSeekV3", "deepseek3.2-671b": "DeepSeek-V3.2", "kimi-k2-1t": "Kimi-K2", "qwen3-480b-a35b": "Qwen3-Coder-480B-A35B",
	"vicuna-7b-v1.5": "Llama2-7B", "vicuna-13b-v1.5": "Llama2-13B", "gpt2": "GPT2-small", "openai-community/gpt2": "GPT2-small",
}

// sizeInName matches the size in the name of a model, such as 30B.
var sizeInName = regexp.MustCompile(`(?i)\b\d+(?:\.\d+)?[bm]\b`)

// brand is a word in front of Llama's names that others leave out.
const brand = "Meta-"

// modelNamed finds a model by its name on the Hub, or in the words of torchtitan or MaxText.
func modelNamed(name string) (spec.Model, error) {
	name = strings.TrimRight(name, "/")
	if m, err := catalog.ModelOnHub(name); err == nil {
		return m, nil
	}
	family, flavor, _ := strings.Cut(name, "/")
	if layers, hidden, ok := launch.TorchtitanShape(family, flavor); ok {
		for _, e := range catalog.Models() {
			if m := e.Model; m.Layers == layers && m.Hidden == hidden && strings.HasPrefix(strings.ToLower(m.Name), strings.ToLower(family[:min(4, len(family))])) {
				return m, nil
			}
		}
	}
	for _, other := range []string{name, path.Base(name)} {
		if known, ok := otherNames[strings.ToLower(other)]; ok {
			return catalog.Model(known)
		}
	}
	for _, other := range []string{strings.ReplaceAll(name, "/", "-"), flavor, strings.TrimPrefix(flavor, brand), name} {
		if m, err := catalog.ModelOnHub(other); err == nil {
			return m, nil
		}
	}
	return catalog.ModelOnHub(name)
}

// answer predicts the plan, its changes, the port and the comparison.
func (c *checker) answer(ctx context.Context) error {
	var err error
	if c.share > 0 {
		c.report, err = c.planner.Partly(ctx, c.found.Request, c.share)
	} else {
		c.report, err = c.planner.FitCheck(ctx, c.found.Request)
	}
	if err != nil {
		if errors.Is(err, planner.ErrInfeasible) {
			c.illegal(err)
			return nil
		}
		return err
	}
	row := NewPlanRow(c.report.Choice)
	c.widen(&row)
	b := c.report.Memory
	b.LogSD = math.Hypot(b.LogSD, c.memorySD)
	c.out.Plan, c.out.Verdict, c.out.FitChance, c.out.Parts = &row, row.Verdict, c.report.Probability(), byName(MemoryShares(b))
	if limit := c.found.Accelerator.MemBytes; limit > 0 && b.Total() > 0 && c.memorySD > 0 {
		c.out.FitChance = b.FitProbability(limit)
		if c.out.Verdict != string(memory.Unsure) {
			c.out.Verdict = string(b.Verdict(limit))
		}
	}
	row.Verdict = c.out.Verdict
	c.totals(&row)
	if c.out.Changes, err = c.changes(ctx); err != nil {
		return err
	}
	if c.q.Measured > 0 {
		c.out.Measured = Compare(&c.found, c.report.Config, &row, c.q.Measured)
	}
	if c.q.To != "" {
		c.out.Port, err = c.port(ctx)
	}
	return err
}

// fixed predicts the plan of r, with the layers that the file recomputes if the plan recomputes as that of the file.
func (c *checker) fixed(ctx context.Context, pl *planner.Planner, r planner.Request) (planner.Choice, error) {
	if c.share == 0 || r.Plan.Recompute != c.written.Recompute {
		return pl.Fixed(ctx, r)
	}
	f, err := pl.Partly(ctx, r, c.share)
	return f.Choice, err
}

// widen adds the uncertainty of keys that are not counted to the interval of a row.
func (c *checker) widen(row *PlanRow) {
	if !(row.StepTimeLo > 0) || c.timeSD == 0 {
		return
	}
	sd := math.Hypot(math.Log(row.StepTimeHi/row.StepTimeLo)/(2*quantile95), c.timeSD)
	row.StepTimeLo, row.StepTimeHi = row.StepTimeSec*math.Exp(-quantile95*sd), row.StepTimeSec*math.Exp(quantile95*sd)
}

// totals fills in days, cost and energy of the whole training.
func (c *checker) totals(row *PlanRow) {
	seq := c.report.Config.Seq()
	tokens := c.q.Tokens
	if tokens == 0 {
		tokens = c.file.TrainTokens(row.GlobalBatch, seq)
	}
	if !(tokens > 0) || seq == 0 || !(row.SamplesPerS > 0) {
		return
	}
	sec := tokens / float64(seq) / row.SamplesPerS
	c.out.Tokens, c.out.Days, c.out.DeviceHrs = tokens, sec/86400, sec/3600*float64(row.Devices)
	c.out.Cost = c.out.DeviceHrs * c.q.Price
	c.out.EnergyKWh = c.found.Accelerator.Watts * c.out.DeviceHrs / 1000
}

// mostChanges bounds the changes of an answer.
const mostChanges = 5

// changes returns the five best single changes of the plan: those that the file can hold, then those that are made elsewhere.
// Others are no help, unless the plan does not fit and nothing else does.
func (c *checker) changes(ctx context.Context) ([]Change, error) {
	base := c.report.Choice
	type option struct {
		Change
		to spec.Config
	}
	var all []option
	for _, s := range planner.SingleChanges(base.Config.Plan, &c.found.Request) {
		s.Plan.SequenceParallel = s.Plan.SequenceParallel || c.file.ImpliesSP() && s.Plan.TP > 1
		at := c.found.Request
		at.Plan = &s.Plan
		ch, err := c.fixed(ctx, c.planner, at)
		switch {
		case errors.Is(err, planner.ErrInfeasible):
			continue
		case err != nil:
			return nil, err
		case !ch.Fits || !(ch.Prediction.Throughput > 0):
			continue
		}
		gain := ch.Prediction.Throughput/base.Prediction.Throughput - 1
		if base.Fits && !(gain > 0.001) {
			continue
		}
		if math.IsInf(gain, 0) || math.IsNaN(gain) {
			gain = 0
		}
		sec, _, _ := ch.Prediction.StepSec(ch.Config.Plan.GlobalBatch())
		all = append(all, option{Change{Change: s.Name, Plan: ch.Config.Plan.String(), Gain: gain, StepS: sec, MemGiB: ch.Prediction.MemoryBytes / memory.GiB, Verdict: string(ch.Verdict)}, ch.Config})
	}
	slices.SortStableFunc(all, func(a, b option) int { return cmp.Compare(a.StepS, b.StepS) })
	held, elsewhere, others := []Change{}, []Change{}, []Change{}
	for _, o := range all {
		if o.Diff, o.NoDiff = c.file.Diff(c.fileConfig(), o.to, recipe.Options{Set: c.q.Set}); o.Diff != "" {
			if held = append(held, o.Change); len(held) == mostChanges {
				break
			}
			continue
		}
		if o.Elsewhere = c.file.Elsewhere(c.fileConfig(), o.to); o.Elsewhere != "" {
			elsewhere = append(elsewhere, o.Change)
		}
		o.NoDiff = strings.TrimPrefix(o.NoDiff, o.Change.Change+": ")
		others = append(others, o.Change)
	}
	out := append(held, elsewhere...)
	if len(out) == 0 && !base.Fits { // what would fit is worth knowing
		out = others
	}
	return out[:min(mostChanges, len(out))], nil
}
