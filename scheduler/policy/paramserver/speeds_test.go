package paramserver

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// fixedSpeeds is an oracle with a table of speeds, and a space of the same Counts.
type fixedSpeeds struct {
	scheduler.Learner                    // only Revision is called
	samplesPerSec     map[Counts]float64 // other Counts are not covered
	err               error              // returned by every call if not nil
	revision, asked   int
}

func (o *fixedSpeeds) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) {
	o.asked++
	v, ok := o.samplesPerSec[Counts{c.Plan.DP, c.Plan.ParamServers}]
	if o.err == nil && !ok {
		return spec.Prediction{}, perfmodel.ErrNotCovered
	}
	return spec.Prediction{Throughput: v}, o.err
}

func (o *fixedSpeeds) Revision(spec.Key) int { return o.revision }

// listed is a space of the listed numbers only.
type listed []Counts

func (l listed) Allows(c spec.Config) bool {
	return slices.Contains(l, Counts{c.Plan.DP, c.Plan.ParamServers})
}

// TestSpeedsRate checks that speeds are in steps of the trained batch; invalid speeds count as no
// prediction.
func TestSpeedsRate(t *testing.T) {
	broken := errors.New("broken")
	j, g := packedJobOf(1, 1, 1).Job, &spec.NodeGroup{}
	for _, c := range []struct {
		name   string
		oracle *fixedSpeeds
		space  scheduler.ServerSpace
		most   int
		at     Counts
		want   float64
		asked  int
		err    error
	}{
		{"steps of 12 samples", &fixedSpeeds{samplesPerSec: map[Counts]float64{{2, 1}: 24}}, anyNumbers{}, 0, Counts{2, 1}, 2, 1, nil},
		{"8 replicas train 16 at once", &fixedSpeeds{samplesPerSec: map[Counts]float64{{8, 1}: 16}}, anyNumbers{}, 0, Counts{8, 1}, 1, 1, nil},
		{"not covered", &fixedSpeeds{}, anyNumbers{}, 0, OneOfEach, 0, 1, nil},
		{"no speed", &fixedSpeeds{samplesPerSec: map[Counts]float64{{1, 1}: 0}}, anyNumbers{}, 0, OneOfEach, 0, 1, nil},
		{"backwards", &fixedSpeeds{samplesPerSec: map[Counts]float64{{1, 1}: -1}}, anyNumbers{}, 0, OneOfEach, 0, 1, nil},
		{"infinite", &fixedSpeeds{samplesPerSec: map[Counts]float64{{1, 1}: math.Inf(1)}}, anyNumbers{}, 0, OneOfEach, 0, 1, nil},
		{"not a number", &fixedSpeeds{samplesPerSec: map[Counts]float64{{1, 1}: math.NaN()}}, anyNumbers{}, 0, OneOfEach, 0, 1, nil},
		{"not allowed", &fixedSpeeds{samplesPerSec: map[Counts]float64{{2, 1}: 24}}, listed{{1, 1}}, 0, Counts{2, 1}, 0, 0, nil},
		{"no server", &fixedSpeeds{samplesPerSec: map[Counts]float64{{1, 0}: 24}}, anyNumbers{}, 0, OneReplica, 0, 0, nil},
		{"no replica", &fixedSpeeds{samplesPerSec: map[Counts]float64{{0, 1}: 24}}, anyNumbers{}, 0, OneServer, 0, 0, nil},
		{"as many as are allowed of any", &fixedSpeeds{samplesPerSec: map[Counts]float64{{2, 3}: 12}}, anyNumbers{}, 3, Counts{2, 3}, 1, 1, nil},
		{"more servers", &fixedSpeeds{samplesPerSec: map[Counts]float64{{2, 4}: 12}}, anyNumbers{}, 3, Counts{2, 4}, 0, 0, nil},
		{"more replicas", &fixedSpeeds{samplesPerSec: map[Counts]float64{{4, 2}: 12}}, anyNumbers{}, 3, Counts{4, 2}, 0, 0, nil},
		{"an error", &fixedSpeeds{err: broken}, anyNumbers{}, 0, Counts{2, 1}, 0, 1, broken},
	} {
		b := NewSpeeds(policy.Deps{Oracle: c.oracle, Servers: c.space})
		b.limit = c.most
		got, err := b.Rate(t.Context(), j, g, c.at)
		if got != c.want || !errors.Is(err, c.err) || c.oracle.asked != c.asked {
			t.Errorf("%s: %g steps/s, error %v, asked %d times; want %g, %v, %d", c.name, got, err, c.oracle.asked, c.want, c.err, c.asked)
		}
		if err != nil && !strings.Contains(err.Error(), "2 replicas and 1 parameter server:") {
			t.Errorf("%s: error %v does not say of what", c.name, err)
		}
	}
	if got, err := NewSpeeds(policy.Deps{Servers: anyNumbers{}}).Rate(t.Context(), j, g, OneOfEach); got != 0 || err != nil {
		t.Errorf("without an oracle: %g steps/s, error %v", got, err)
	}
}

// TestSpeedsOrder checks the order: fastest first, ties to fewer tasks, Counts without a prediction last.
// Counts that cannot be reached by adding one task at a time are left out. The oracle is
// queried once per revision.
func TestSpeedsOrder(t *testing.T) {
	space := listed{{1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2}, {3, 1}, {5, 5}}
	o := &fixedSpeeds{samplesPerSec: map[Counts]float64{{1, 1}: 12, {1, 2}: 12, {1, 3}: 12, {2, 1}: 12, {2, 2}: 24, {5, 5}: 99}}
	b := NewSpeeds(policy.Deps{Oracle: o, Servers: space})
	order := func() []Counts {
		got, err := b.Order(t.Context(), packedJobOf(1, 1, 1).Job, &spec.NodeGroup{})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	want := []Counts{{2, 2}, {1, 1}, {1, 2}, {2, 1}, {1, 3}, {3, 1}}
	for range 2 {
		if got := order(); !slices.Equal(got, want) || o.asked != 6 {
			t.Errorf("%v, asked %d times; want %v and 6", got, o.asked, want)
		}
	}
	o.samplesPerSec[Counts{3, 1}], o.revision = 48, 1
	if got := order(); got[0] != (Counts{3, 1}) || o.asked != 12 {
		t.Errorf("when it has learnt: %v, asked %d times in all; want 3 replicas and 1 server first, 12", got, o.asked)
	}
	for range 2 {
		if rate, err := b.Rate(t.Context(), packedJobOf(1, 1, 1).Job, &spec.NodeGroup{}, Counts{3, 1}); rate != 4 || err != nil || o.asked != 12 {
			t.Errorf("%g steps/s, error %v, asked %d times in all; want 4 and 12", rate, err, o.asked)
		}
	}
}
