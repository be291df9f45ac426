package answer

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/planner"
)

const (
	// maxPlans bounds the plans that are kept.
	maxPlans = 1024
	// maxKeptText bounds the text that a plan is kept by, bytes.
	maxKeptText = 512
	// maxKeptShape bounds the shape of a plan that is kept, bytes: 8192 nodes.
	maxKeptShape = 16 << 10
)

// Kept returns the plan of a body of POST /v1/predict, nil if none is kept, and the tokens of its samples, 0 for the plan's
// own.
func (c *Answerer) Kept(body []byte) (p *Prepared, seq int) {
	from, to, seq := seqOf(body)
	if len(body) > maxKeptText || seq < 0 {
		return nil, 0
	}
	var key [maxKeptText]byte
	n := copy(key[:], body[:from])
	n += copy(key[n:], body[to:])
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.plans[string(key[:n])], seq
}

// Keep prepares the plan of q, as ReadQuestion returns it of body, for the present models and measurements. Kept returns it
// for bodies that differ in seq alone.
func (c *Answerer) Keep(ctx context.Context, q *Question, body []byte) *Prepared {
	generation := c.Generation()
	key := q.PlanOnly().clone()
	batch := c.NewBatch(nil)
	p := batch.PrepareRows(ctx, &key)
	from, to, seq := seqOf(body)
	if p.err != nil || batch.shapes > maxKeptShape || len(body) > maxKeptText || seq != q.Seq-key.Seq {
		return p
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation == generation { // else p may be out of date
		if len(c.plans) >= maxPlans {
			clear(c.plans)
		}
		c.plans[string(body[:from])+string(body[to:])] = p
	}
	return p
}

// seqOf returns the number of seq in a body and where it is, with the blanks around it; 0 without one, and below 0 for one
// that ReadQuestion refuses. With packed documents it counts as part of the plan, so there is none.
//
// Texts that ReadQuestion accepts have no escapes, so that this finds the field and nothing else. A body that differs from
// such a text in this number alone is then one too.
func seqOf(body []byte) (from, to, seq int) {
	const name, blanks = `"seq"`, " \n\r\t"
	var rest []byte
	for found := false; !found; { // it may be a value too
		at := bytes.Index(body[from:], []byte(name))
		if at < 0 || bytes.Contains(body, []byte(`"packed"`)) {
			return 0, 0, 0
		}
		from += at + len(name)
		rest, found = bytes.CutPrefix(bytes.TrimLeft(body[from:], blanks), []byte(":"))
	}
	from = len(body) - len(rest)
	rest = bytes.TrimLeft(rest, blanks)
	digits := 0
	for ; digits < min(len(rest), maxDigits) && '0' <= rest[digits] && rest[digits] <= '9'; digits++ {
		seq = 10*seq + int(rest[digits]-'0')
	}
	if digits == 0 || rest[0] == '0' || seq > query.MaxSeq {
		return 0, 0, -1
	}
	return from, len(body) - len(bytes.TrimLeft(rest[digits:], blanks)), seq
}

// AppendDirect appends the JSON of Predict's answer at a length of samples, 0 for the plan's own, where that needs no search
// and is no error. Else it returns nil. ElapsedS counts from start. An answer that is computed for two questions in a row is
// kept for those after them.
func (p *Prepared) AppendDirect(ctx context.Context, b []byte, seq int, start time.Time) []byte {
	if last := p.repeated.Load(); last != nil && last.seq == seq {
		return endPlans(append(b, last.text...), last.fits, start)
	}
	var choice planner.Choice
	if !p.direct(ctx, seq, &choice) {
		return nil
	}
	text, err := p.appendRow(append(b, `{"plans":[`...), &choice)
	if err != nil {
		return nil // AppendPrediction has the error
	}
	if p.asked.Swap(int64(seq)+1) == int64(seq)+1 {
		p.repeated.Store(&repeated{seq, slices.Clone(text[len(b):]), choice.Fits})
	}
	return endPlans(text, choice.Fits, start)
}

// repeated is the beginning of an answer that is kept.
type repeated struct {
	seq  int
	text []byte
	fits bool
}

// AppendPrediction is AppendDirect with a search where that is needed. Errors are those of Predict.
func (p *Prepared) AppendPrediction(ctx context.Context, b []byte, seq int, start time.Time) ([]byte, error) {
	var choice planner.Choice
	if err := p.At(ctx, seq, &choice); err != nil {
		return nil, err
	}
	text, err := p.appendRow(append(b, `{"plans":[`...), &choice)
	if err != nil {
		return nil, err
	}
	return endPlans(text, choice.Fits, start), nil
}

// endPlans appends the end of the JSON of query.Plans with one row.
func endPlans(b []byte, fits bool, start time.Time) []byte {
	fitting := 0
	if fits {
		fitting = 1
	}
	out, _ := query.AppendPlansEnd(b, 1, fitting, time.Since(start).Seconds()) // the time is finite
	return out
}
