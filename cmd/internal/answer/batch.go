package answer

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Batch prepares the plans of a batch: it looks up the names of a site once. It is of the present models and measurements.
// Not safe for concurrent use.
type Batch struct {
	answerer *Answerer
	check    func(*Question) error
	sites    map[Question]*site // by fields besides those of query.FixedPlan
	shapes   int                // bytes of the shapes that are prepared
}

// maxShapes bounds the shapes of a batch, bytes. A shape has 2 for each node of "1000000x1".
const maxShapes = 32 << 20

// site is a request with names that are looked up.
type site struct {
	request  query.Request
	resolved query.Resolved
	model    *Model
	cost     spec.TrainCost
	err      error
}

// NewBatch returns a Batch of questions that pass check, unless that is nil.
func (c *Answerer) NewBatch(check func(*Question) error) *Batch {
	return &Batch{answerer: c, check: check, sites: map[Question]*site{}}
}

// Prepared is a plan that is looked up and checked. It answers for every length of samples. Safe for concurrent use.
type Prepared struct {
	site *site
	plan *planner.FixedPlan
	err  error // instead of an answer
	words

	asked    atomic.Int64             // the length that AppendDirect computed last, plus 1
	repeated atomic.Pointer[repeated] // the answer that AppendDirect keeps
}

// words are what the rows of a plan have in common.
type words struct {
	devices, batch int
	shape          string
	head           []byte // of the JSON
}

// PrepareRows is Prepare for AppendRow too.
func (b *Batch) PrepareRows(ctx context.Context, q *Question) *Prepared {
	p := b.Prepare(ctx, q)
	if p.err == nil {
		plan, shape := p.plan.Plan()
		p.words = words{plan.Devices(), plan.GlobalBatch(), query.ShapeText(shape), query.AppendHead(nil, &plan)}
	}
	return p
}

// Prepare prepares q, one of Questions.Plans: what differs from it in Seq only, or with Packed q alone. The texts of q are in
// use as long as b is, but no longer.
func (b *Batch) Prepare(ctx context.Context, q *Question) *Prepared {
	if b.check != nil {
		if err := b.check(q); err != nil {
			return &Prepared{err: err}
		}
	}
	s := b.site(ctx, *q)
	if s.err != nil {
		return &Prepared{err: s.err}
	}
	if b.shapes > maxShapes {
		return &Prepared{err: &query.FieldError{Field: "shape", Value: q.Shape, Why: fmt.Sprintf("is one too many for the %d bytes of shapes in a batch, 2 or more for each node: ask about fewer plans at a time", maxShapes)}}
	}
	r := s.resolved
	err := r.Fix(&s.request, query.FixedPlan{Plan: q.Plan, Shape: strings.Clone(q.Shape), Devices: q.Devices})
	if b.shapes += len(r.Shape.Devices); err != nil {
		return &Prepared{err: err}
	}
	return &Prepared{site: s, plan: s.model.Planner.PrepareFixed(&s.resolved.Request, r.Plan, r.Shape)}
}

func (b *Batch) site(ctx context.Context, key Question) *site {
	key.Plan, key.Shape, key.Devices = "", "", 0
	s, ok := b.sites[key]
	if !ok {
		s = &site{request: key.clone().request()}
		s.resolved, s.model, s.err = b.answerer.Resolve(ctx, &s.request)
		s.cost = s.resolved.Model.TrainCost()
		b.sites[key] = s
	}
	return s
}

// Cost is the cost of the model.
func (p *Prepared) Cost() *spec.TrainCost { return &p.site.cost }

// At sets out to the answer for samples of seq tokens; 0 = the question's own length. Errors are those of PredictRow.
func (p *Prepared) At(ctx context.Context, seq int, out *planner.Choice) error {
	if p.err != nil {
		return p.err
	}
	if seq != 0 {
		if err := query.InRange("seq", seq, query.MaxSeq); err != nil {
			return err
		}
	}
	return p.plan.At(ctx, p.length(seq), out)
}

// direct is At without a search. ok is false where that needs one, and after errors.
func (p *Prepared) direct(ctx context.Context, seq int, out *planner.Choice) (ok bool) {
	return p.err == nil && seq <= query.MaxSeq && p.plan.Direct(ctx, p.length(seq), out)
}

// length returns seq, or the question's own length for 0.
func (p *Prepared) length(seq int) int { return cmp.Or(seq, p.site.resolved.SeqLen) }

// AppendRow appends the JSON of the query.PlanRow of At to b. After an error it returns b.
func (p *Prepared) AppendRow(ctx context.Context, b []byte, seq int) ([]byte, error) {
	var choice planner.Choice
	if err := p.At(ctx, seq, &choice); err != nil {
		return b, err
	}
	return p.appendRow(b, &choice)
}

func (p *Prepared) appendRow(b []byte, choice *planner.Choice) ([]byte, error) {
	row := query.PlanRow{Devices: p.devices, GlobalBatch: p.batch, Shape: p.shape}
	row.Set(choice, p.Cost())
	return row.AppendJSON(b, p.head)
}
