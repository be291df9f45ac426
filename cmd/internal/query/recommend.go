package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// RecommendRequest asks how many devices, and of what type, to train on. Fields are those of pacer recommend.
type RecommendRequest struct {
	Request
	Space
	Tokens   float64 `json:"tokens" exclusiveMinimum:"0" maximum:"1e18" example:"1e12" doc:"Tokens to train on."`
	Have     string  `json:"have" minLength:"1" maxLength:"4096" example:"h100:256@2.1,b200:64@4.5" doc:"Devices there are, TYPE:MAX@PRICE joined by commas: at most MAX devices at PRICE per device-hour in any currency. Without @PRICE costs are in device-hours. An answer has one type."`
	Budget   float64 `json:"budget,omitempty" exclusiveMinimum:"0" maximum:"1e15" doc:"Most that the training may cost."`
	Deadline string  `json:"deadline,omitempty" maxLength:"32" example:"14d" doc:"Most time that the training may take, such as 14d or 36h."`
	Method   string  `json:"method,omitempty" maxLength:"64" example:"lora" doc:"full, the default, or an adapter such as lora or qlora:64:qkv+o+mlp."`
}

// Stock is one type of device with the largest number of them.
type Stock struct {
	Accelerator string
	Max         int
	Price       float64 // of a device-hour, 0 = none
}

// maxStock bounds the types of a request.
const maxStock = 64

// ParseHave reads TYPE:MAX@PRICE,... Errors are *FieldError.
func ParseHave(text string) ([]Stock, error) {
	bad := func(item, format string, args ...any) error {
		return &FieldError{Field: "have", Value: item, Why: fmt.Sprintf(format, args...) + ": want TYPE:MAX@PRICE, such as h100:256@2.1"}
	}
	var out []Stock
	for _, item := range strings.Split(text, ",") {
		name, rest, ok := strings.Cut(strings.TrimSpace(item), ":")
		if !ok || name == "" {
			return nil, bad(item, "has no number of devices")
		}
		count, price, priced := strings.Cut(rest, "@")
		s := Stock{Accelerator: name}
		var err error
		if s.Max, err = strconv.Atoi(count); err != nil || s.Max < 1 || s.Max > maxRecommended {
			return nil, bad(item, "has the number of devices %q, which is not in 1..%d", count, maxRecommended)
		}
		if priced {
			if s.Price, err = strconv.ParseFloat(price, 64); err != nil || !(s.Price > 0 && s.Price <= 1e9) {
				return nil, bad(item, "has the price %q, which is not above 0", price)
			}
		}
		if slices.ContainsFunc(out, func(o Stock) bool { return o.Accelerator == s.Accelerator }) {
			return nil, bad(item, "names a type twice")
		}
		if len(out) > 0 && (out[0].Price > 0) != priced {
			return nil, bad(item, "and %s must both have a price or none", out[0].Accelerator)
		}
		if out = append(out, s); len(out) > maxStock {
			return nil, bad(item, "is beyond %d types", maxStock)
		}
	}
	return out, nil
}

// maxRecommended bounds the devices of one type.
const maxRecommended = 1 << 14

// Seconds reads a time such as 14d, 36h, 90min or 12.3s.
func Seconds(text string) (float64, bool) {
	for _, unit := range []struct {
		name string
		size float64
	}{{"min", 60}, {"ms", 1e-3}, {"d", 86400}, {"h", 3600}, {"s", 1}} {
		if number, ok := strings.CutSuffix(strings.TrimSpace(text), unit.name); ok {
			v, err := strconv.ParseFloat(number, 64)
			return v * unit.size, err == nil && v > 0 && v < 1e12
		}
	}
	return 0, false
}

// Usual batches, where a request has none.
const (
	pretrainingTokens = 4 << 20 // a step of Llama 2: 4M tokens (Touvron et al. 2023, arXiv 2307.09288, section 2.2)
	adapterSamples    = 64      // of QLoRA for its larger models (Dettmers et al. 2023, arXiv 2305.14314, table 9)
)

// Recommendation is the JSON of pacer recommend.
type Recommendation struct {
	Model       string         `json:"model"`
	Tokens      float64        `json:"tokens"`
	SeqLen      int            `json:"seq_len"`
	GlobalBatch int            `json:"global_batch" doc:"Samples per step."`
	BatchSource string         `json:"batch_source" doc:"Where the batch is from."`
	Cheapest    *RecommendRow  `json:"cheapest,omitempty" doc:"Least cost within budget and deadline."`
	Fastest     *RecommendRow  `json:"fastest,omitempty" doc:"Least time within budget and deadline."`
	Fewest      *RecommendRow  `json:"fewest,omitempty" doc:"Fewest devices on which a plan fits, within budget and deadline if some are."`
	Front       []RecommendRow `json:"front" doc:"Every choice that no other beats in time and cost at once, by time."`
	Priced      bool           `json:"priced" doc:"Whether costs are in the currency of the prices; else they are in device-hours."`
	None        []string       `json:"none" doc:"Types of device on which nothing fits, and why."`
	Within      bool           `json:"within" doc:"Whether a choice is within budget and deadline; without one the answers are of all choices."`
}

// RecommendRow is one choice. lo and hi bound a 90 % interval.
type RecommendRow struct {
	Accelerator string  `json:"accelerator"`
	Days        float64 `json:"days"`
	DaysLo      float64 `json:"days_lo"`
	DaysHi      float64 `json:"days_hi"`
	Cost        float64 `json:"cost"`
	CostLo      float64 `json:"cost_lo"`
	CostHi      float64 `json:"cost_hi"`
	EnergyKWh   float64 `json:"energy_kwh,omitempty" doc:"Of the devices at their power limit, without hosts, network and cooling; absent where the limit is not known."`
	PlanRow
	Sensitivities []Sensitivity `json:"sensitivities,omitempty" doc:"What the time would be if something that is not known were otherwise."`

	choice planner.Choice
	on     *stocked
}

// Sensitivity is the effect of something that is not known.
type Sensitivity struct {
	What  string  `json:"what" example:"global batch 2048"`
	Ratio float64 `json:"days_ratio" doc:"Time divided by the predicted one."`
}

// stocked is a type of device with what answers requests about it.
type stocked struct {
	Stock
	request  planner.Request
	resolved Resolved
	planner  *planner.Planner
}

// recommender answers one RecommendRequest.
type recommender struct {
	q        RecommendRequest
	deadline float64 // seconds
	budget   float64 // cost
	out      Recommendation
	samples  float64
}

// Recommend answers q; resolve looks up a request. Errors are *FieldError where the request is at fault; if nothing fits on
// any type, the error wraps planner.ErrInfeasible.
func Recommend(ctx context.Context, resolve func(context.Context, Request) (Resolved, error), q RecommendRequest) (*Recommendation, error) {
	c := &recommender{q: q, deadline: math.Inf(1), budget: math.Inf(1)}
	stock, err := c.check()
	if err != nil {
		return nil, err
	}
	space, err := q.Space.Enumerate(q.Precision)
	if err != nil {
		return nil, err
	}
	var rows, fewest []RecommendRow
	var none error
	for _, s := range stock {
		on, err := c.resolve(ctx, resolve, s, space)
		if err != nil {
			return nil, err
		}
		front, err := on.planner.Front(ctx, on.request)
		if errors.Is(err, planner.ErrInfeasible) {
			none = cmp.Or(none, err)
			c.out.None = append(c.out.None, s.Accelerator+": "+strings.TrimPrefix(err.Error(), "planner: "))
			continue
		} else if err != nil {
			return nil, err
		}
		for _, p := range front.Points {
			rows = append(rows, c.row(on, p))
		}
		fewest = append(fewest, c.row(on, front.Fewest))
	}
	if len(rows) == 0 {
		return nil, none
	}
	return c.choose(ctx, rows, fewest)
}

// check reads what the request says.
func (c *recommender) check() ([]Stock, error) {
	q := &c.q
	if !(q.Tokens > 0 && q.Tokens <= 1e18) {
		return nil, &FieldError{Field: "tokens", Value: q.Tokens, Why: "is not above 0: how many tokens to train on?"}
	}
	stock, err := ParseHave(q.Have)
	if err != nil {
		return nil, err
	}
	if q.Budget != 0 {
		if !(q.Budget > 0 && q.Budget <= maxFigure) {
			return nil, &FieldError{Field: "budget", Value: q.Budget, Why: "is not above 0"}
		}
		c.budget = q.Budget
	}
	if q.Deadline != "" {
		sec, ok := Seconds(q.Deadline)
		if !ok {
			return nil, &FieldError{Field: "deadline", Value: q.Deadline, Why: "is not a time above 0, such as 14d or 36h"}
		}
		c.deadline = sec
	}
	if q.Method != "" && q.Method != "full" {
		if q.Adapter != "" {
			return nil, &FieldError{Field: "method", Value: q.Method, Why: "and {adapter} are the same thing: give one of them"}
		}
		if q.Adapter = q.Method; !strings.Contains(q.Method, ":") {
			q.Adapter += ":16"
		}
		if _, err := spec.ParseAdapter(q.Adapter); err != nil {
			return nil, &FieldError{Field: "method", Value: q.Method, Why: "is not full, nor an adapter such as lora or qlora:64:qkv+o+mlp"}
		}
	}
	c.out = Recommendation{Tokens: q.Tokens, Priced: stock[0].Price > 0, None: []string{}}
	return stock, nil
}

// resolve looks up one type of device.
func (c *recommender) resolve(ctx context.Context, resolve func(context.Context, Request) (Resolved, error), s Stock, space planner.Enumerate) (*stocked, error) {
	q := c.q.Request
	q.Accelerator = s.Accelerator
	r, err := resolve(ctx, q)
	if err != nil {
		return nil, err
	}
	seq := cmp.Or(r.SeqLen, r.Model.SeqLen)
	if seq == 0 {
		return nil, &FieldError{Field: "model", Value: r.Model.Name, Why: "has no tokens per sample: give {seq}"}
	}
	c.batch(q.GlobalBatch, seq, &r)
	c.samples = c.q.Tokens / float64(seq)
	if r.GlobalBatch = c.out.GlobalBatch; r.GlobalBatch > MaxBatch {
		return nil, &FieldError{Field: "global_batch", Value: r.GlobalBatch, Why: fmt.Sprintf("is not in 1..%d", MaxBatch)}
	}
	c.out.Model, c.out.SeqLen = r.Model.Name, seq
	r.Devices = s.Max
	on := &stocked{Stock: s, request: r.Request, resolved: r, planner: planner.New(r.Predictor, planner.Options{Space: space})}
	on.Accelerator = r.Accelerator.Name
	return on, nil
}

// batch sets the global batch: that of the request, else the usual one. It is a power of two, because a number with
// few divisors leaves few plans: 4M tokens are 21290 images of ViT-L/16, 2 x 5 x 2129.
func (c *recommender) batch(given, seq int, r *Resolved) {
	switch {
	case given > 0:
		c.out.GlobalBatch, c.out.BatchSource = given, "the request"
	case r.Model.Adapter.Kind != spec.FullTraining:
		c.out.GlobalBatch, c.out.BatchSource = adapterSamples, "assumed: QLoRA (Dettmers et al. 2023, arXiv 2305.14314, table 9)"
	default:
		c.out.GlobalBatch = 1 << int(max(math.Round(math.Log2(pretrainingTokens/float64(seq))), 0))
		c.out.BatchSource = "assumed: 4M tokens as Llama 2 (Touvron et al. 2023, arXiv 2307.09288, section 2.2), to the nearest power of two samples"
	}
}

// row is a choice with its time and cost.
func (c *recommender) row(on *stocked, ch planner.Choice) RecommendRow {
	out := RecommendRow{Accelerator: on.Accelerator, PlanRow: NewPlanRow(ch), choice: ch, on: on}
	days := func(throughput float64) float64 {
		if !(throughput > 0) {
			throughput = ch.Prediction.Throughput
		}
		return c.samples / throughput / 86400
	}
	hourly := float64(out.Devices) * cmp.Or(on.Price, 1) * 24
	out.Days, out.DaysLo, out.DaysHi = days(ch.Prediction.Throughput), days(ch.Prediction.Hi), days(ch.Prediction.Lo)
	out.Cost, out.CostLo, out.CostHi = out.Days*hourly, out.DaysLo*hourly, out.DaysHi*hourly
	out.EnergyKWh = out.JoulesPerSample * c.samples / 3.6e6
	return out
}

// choose picks the answers among all choices.
func (c *recommender) choose(ctx context.Context, rows, fewest []RecommendRow) (*Recommendation, error) {
	byTime := func(a, b RecommendRow) int {
		return cmp.Or(cmp.Compare(a.Days, b.Days), cmp.Compare(a.Cost, b.Cost), cmp.Compare(a.Accelerator, b.Accelerator))
	}
	slices.SortStableFunc(rows, byTime)
	for _, r := range rows {
		if n := len(c.out.Front); n == 0 || r.Cost < c.out.Front[n-1].Cost {
			c.out.Front = append(c.out.Front, r)
		}
	}
	ok := func(r RecommendRow) bool { return r.Cost <= c.budget && r.Days*86400 <= c.deadline }
	inside := func(list []RecommendRow) []RecommendRow {
		return slices.DeleteFunc(slices.Clone(list), func(r RecommendRow) bool { return !ok(r) })
	}
	candidates := inside(c.out.Front)
	if c.out.Within = len(candidates) > 0; !c.out.Within {
		candidates = c.out.Front
	}
	few := inside(append(slices.Clone(fewest), rows...))
	if len(few) == 0 {
		few = fewest
	}
	fast, cheap := candidates[0], candidates[len(candidates)-1]
	small := slices.MinFunc(few, func(a, b RecommendRow) int {
		return cmp.Or(cmp.Compare(a.Devices, b.Devices), cmp.Compare(a.Cost, b.Cost), byTime(a, b))
	})
	for _, r := range []*RecommendRow{&fast, &cheap, &small} {
		if err := c.sensitivities(ctx, r); err != nil {
			return nil, err
		}
	}
	c.out.Fastest, c.out.Cheapest, c.out.Fewest = &fast, &cheap, &small
	return &c.out, nil
}

// sensitivities predicts the time with another batch, a slower network, and the training stack that would change most.
func (c *recommender) sensitivities(ctx context.Context, row *RecommendRow) error {
	r := row.on.request
	r.Devices = row.Devices
	add := func(what string, at planner.Request) error {
		best, err := row.on.planner.Best(ctx, at)
		if errors.Is(err, planner.ErrInfeasible) {
			return nil // no plan has this batch on so many devices
		}
		if err == nil {
			row.Sensitivities = append(row.Sensitivities, Sensitivity{what, row.SamplesPerS / best.Prediction.Throughput})
		}
		return err
	}
	for _, b := range []int{r.GlobalBatch / 2, r.GlobalBatch * 2} {
		at := r
		if at.GlobalBatch = b; b < 1 || b > MaxBatch {
			continue
		}
		if err := add(fmt.Sprintf("global batch %d", b), at); err != nil {
			return err
		}
	}
	if per := cmp.Or(r.PerNode, usualDevices); r.Devices > per && r.Link.InterBps > 0 {
		at := r
		at.Link.InterBps /= 2
		if err := add("half the network between nodes", at); err != nil {
			return err
		}
	}
	e, err := ExplainerOf(row.on.resolved.Predictor, row.on.resolved.Family)
	if err != nil {
		return nil // this family does not say which stacks it assumes
	}
	explained, err := Explain(e, nil, row.choice.Config)
	if err != nil {
		return err
	}
	if s := explained.Decisive(); s != nil {
		row.Sensitivities = append(row.Sensitivities, Sensitivity{"training stack " + s.Framework, s.StepRatio})
	}
	return nil
}
