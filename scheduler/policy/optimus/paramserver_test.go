package optimus

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/paramserver"
)

// tableOf is an oracle and a space of steps/s by numbers, of jobs that train 12 samples a
// step.
func tableOf(stepsPerSec map[paramserver.Counts]float64) (tableOracle, listedSpace) {
	o, space := tableOracle{samplesPerSec: map[paramserver.Counts]float64{}}, listedSpace{}
	for n, v := range stepsPerSec {
		o.samplesPerSec[n] = 12 * v
		space = append(space, n)
	}
	return o, space
}

// TestParamServerOptimusLarger: additional tasks of a job, fewest first, ties to servers.
func TestParamServerOptimusLarger(t *testing.T) {
	o, space := tableOf(map[paramserver.Counts]float64{n(1, 1): 1, n(1, 2): 5, n(2, 1): 1, n(2, 2): 3, n(1, 3): 9, n(3, 1): 8, n(3, 2): 7, n(2, 3): 6})
	p := &paramServerOptimus{Speeds: paramserver.NewSpeeds(policy.Deps{Oracle: o, Servers: space})}
	for has, want := range map[paramserver.Counts][]paramserver.Counts{
		n(1, 1): {n(0, 1), n(1, 0), n(0, 2), n(1, 1), n(2, 0), n(1, 2), n(2, 1)},
		n(2, 1): {n(0, 1), n(1, 0), n(0, 2), n(1, 1)},
		n(3, 2): nil,
	} {
		j := &psJob{PackedJob: idleJob(1, 1, 1)}
		j.Has = has
		if got, err := p.larger(t.Context(), &spec.NodeGroup{}, j); err != nil || !slices.Equal(got, want) {
			t.Errorf("beyond %v: %v, error %v, want %v", has, got, err, want)
		}
	}
}

// optimusCase is a decision of Optimus on one node. The jobs differ in their steps only;
// replicas and servers need one CPU each and no devices.
type optimusCase struct {
	name  string
	rates map[paramserver.Counts]float64
	cpus  int
	left  []float64
	raw   bool
	want  []paramserver.Counts
}

// TestParamServerOptimusGains: replicas and servers go to the job with the highest gain.
func TestParamServerOptimusGains(t *testing.T) {
	steep := map[paramserver.Counts]float64{n(1, 1): 1, n(1, 2): 10, n(1, 3): 11}
	for _, c := range []optimusCase{
		{"the greatest gain first, though it came last", steep, 5, []float64{10, 100}, false, []paramserver.Counts{n(1, 1), n(1, 2)}},
		{"then the job with the greatest gain now", steep, 6, []float64{60, 100}, false, []paramserver.Counts{n(1, 2), n(1, 2)}},
		{"of equal gains the job that arrived first", steep, 5, []float64{50, 50}, false, []paramserver.Counts{n(1, 2), n(1, 1)}},
		{"of equal gains servers first", map[paramserver.Counts]float64{n(1, 1): 1, n(1, 2): 2, n(2, 1): 2}, 3, []float64{10}, false, []paramserver.Counts{n(1, 2)}},
		{"over a dent", map[paramserver.Counts]float64{n(1, 1): 1, n(1, 2): 0.5, n(1, 3): 4}, 4, []float64{10}, false, []paramserver.Counts{n(1, 3)}},
		{"no room over the dent, but on the way", map[paramserver.Counts]float64{n(1, 1): 1, n(1, 2): 0.5, n(1, 3): 1.1, n(1, 4): 9}, 4, []float64{10}, false, []paramserver.Counts{n(1, 3)}},
		{"the raw gain is of as many as there may be", map[paramserver.Counts]float64{n(1, 1): 1, n(1, 2): 2, n(1, 3): 2.1}, 3, []float64{10}, true, []paramserver.Counts{n(1, 2)}},
		{"nothing that makes it slower", map[paramserver.Counts]float64{n(1, 1): 1, n(1, 2): 0.9}, 9, []float64{10}, false, []paramserver.Counts{n(1, 1)}},
		{"nothing that changes nothing", map[paramserver.Counts]float64{n(1, 1): 1, n(1, 2): 1}, 9, []float64{10}, false, []paramserver.Counts{n(1, 1)}},
	} {
		o, space := tableOf(c.rates)
		f := packingOf(spec.NodeGroup{Count: 1, Devices: 1, CPUs: c.cpus})
		for i, left := range c.left {
			j := idleJob(0, 1, 1)
			j.Remaining, j.Arrival = left, i
			f.Jobs = append(f.Jobs, j)
		}
		p := &paramServerOptimus{Speeds: paramserver.NewSpeeds(policy.Deps{Oracle: o, Servers: space}), raw: c.raw, last: -policy.Never}
		if err := p.fill(t.Context(), &scheduler.Snapshot{}, f); err != nil {
			t.Fatal(err)
		}
		for i, j := range f.Jobs {
			if j.Has != c.want[i] {
				t.Errorf("%s: job %d has %v, want %v", c.name, i, j.Has, c.want[i])
			}
		}
	}
}

// holding returns a job that holds n on node 0; its restarts take 10 s.
func holding(left float64, n paramserver.Counts) *paramserver.PackedJob {
	j := holdingJob(n)
	j.Job.Devices, j.Grant.Slots[0].Devices, j.Grant.Slots[0].Workers = 0, 0, n.Replicas
	j.Job.Host, j.Job.ServerHost = spec.Host{MilliCPUs: 1000}, spec.Host{MilliCPUs: 1000}
	j.Remaining, j.StartCost = left, 10*time.Second
	return j
}

// TestParamServerOptimusRelents: a job that would save less than a restart costs keeps its
// Counts; growing jobs are checked first, shrinking jobs keep theirs only if they fit.
func TestParamServerOptimusRelents(t *testing.T) {
	rates := map[paramserver.Counts]float64{n(1, 1): 1, n(1, 2): 2, n(1, 3): 2.2}
	for _, c := range []struct {
		name string
		cpus int
		jobs []*paramserver.PackedJob
		want []paramserver.Counts
	}{
		{"20 s less", 4, []*paramserver.PackedJob{holding(40, paramserver.OneOfEach)}, []paramserver.Counts{n(1, 3)}},
		{"10 s less", 3, []*paramserver.PackedJob{holding(20, paramserver.OneOfEach)}, []paramserver.Counts{n(1, 1)}},
		{"a little more than 10 s", 3, []*paramserver.PackedJob{holding(20.1, paramserver.OneOfEach)}, []paramserver.Counts{n(1, 2)}},
		{"what is freed is for those that would have less", 5, []*paramserver.PackedJob{holding(15, n(1, 2)), holding(18, paramserver.OneOfEach)}, []paramserver.Counts{n(1, 2), n(1, 1)}},
		{"where nothing is freed they have less", 5, []*paramserver.PackedJob{holding(15, n(1, 2)), holding(90, paramserver.OneOfEach)}, []paramserver.Counts{n(1, 1), n(1, 2)}},
	} {
		o, space := tableOf(rates)
		f := packingOf(spec.NodeGroup{Count: 1, Devices: 1, CPUs: c.cpus})
		for i, j := range c.jobs {
			j.Arrival = i
			f.Jobs = append(f.Jobs, j)
		}
		p := &paramServerOptimus{Speeds: paramserver.NewSpeeds(policy.Deps{Oracle: o, Servers: space}), last: -policy.Never}
		if err := p.fill(t.Context(), &scheduler.Snapshot{}, f); err != nil {
			t.Fatal(err)
		}
		for i, j := range f.Jobs {
			if j.Has != c.want[i] {
				t.Errorf("%s: job %d has %v, want %v", c.name, i, j.Has, c.want[i])
			}
		}
	}
}

// TestParamServerOptimusSaves: new Counts without a prediction are worth a restart.
func TestParamServerOptimusSaves(t *testing.T) {
	o, space := tableOf(map[paramserver.Counts]float64{n(1, 1): 1, n(1, 2): 2, n(1, 3): 0})
	p := &paramServerOptimus{Speeds: paramserver.NewSpeeds(policy.Deps{Oracle: o, Servers: space})}
	f := packingOf(spec.NodeGroup{Count: 1, Devices: 1, CPUs: 5})
	for _, c := range []struct{ held, meant, want float64 }{{1, 2, 20}, {2, 1, -20}, {3, 1, math.Inf(1)}, {1, 3, math.Inf(1)}} {
		j := &psJob{PackedJob: holding(0, n(1, int(c.held))), left: 40}
		j.Group, j.Has = 0, n(1, int(c.meant))
		if got, err := p.saves(t.Context(), f, j); got != c.want || err != nil {
			t.Errorf("%g servers instead of %g: saves %g s, error %v, want %g", c.meant, c.held, got, err, c.want)
		}
		if got, want := j.grown(), int(c.meant-c.held); got != want {
			t.Errorf("%g servers instead of %g: %d more, want %d", c.meant, c.held, got, want)
		}
	}
}

// TestParamServerOptimusIntervals: with convergence the Counts of running jobs change once per
// interval; new jobs start at once.
func TestParamServerOptimusIntervals(t *testing.T) {
	o, space := tableOf(map[paramserver.Counts]float64{n(1, 1): 1, n(1, 2): 2, n(1, 3): 3})
	p := &paramServerOptimus{Speeds: paramserver.NewSpeeds(policy.Deps{Oracle: o, Servers: space}), interval: 600 * time.Second, convergence: newConvergence(nil), young: 0.95, last: -policy.Never}
	at := func(now time.Duration, want ...paramserver.Counts) {
		t.Helper()
		f := packingOf(spec.NodeGroup{Count: 1, Devices: 1, CPUs: 5})
		running, newcomer := holding(100, n(1, 2)), idleJob(0, 1, 1)
		running.Done, running.StartCost, newcomer.Done, newcomer.Arrival = 10, 0, 1000, 1
		f.Jobs = []*paramserver.PackedJob{running, newcomer}
		if err := p.fill(t.Context(), &scheduler.Snapshot{Now: now}, f); err != nil {
			t.Fatal(err)
		}
		if got := []paramserver.Counts{running.Has, newcomer.Has}; !slices.Equal(got, want) {
			t.Errorf("at %v: %v, want %v", now, got, want)
		}
	}
	anew, kept := []paramserver.Counts{n(1, 1), n(1, 2)}, []paramserver.Counts{n(1, 2), n(1, 1)}
	at(time.Hour, anew...)
	at(time.Hour, anew...) // asked again at once, as by a learner
	at(time.Hour+599*time.Second, kept...)
	at(time.Hour+600*time.Second, anew...)
	at(time.Hour+601*time.Second, kept...)
}

// loggedLosses logs the same losses for one job.
type loggedLosses struct {
	id spec.JobID
	scheduler.Losses
}

func (l loggedLosses) Log(_ context.Context, j *scheduler.JobState) (scheduler.Losses, bool) {
	return l.Losses, j.Job.ID == l.id
}

// TestParamServerOptimusConverges: remaining steps are estimated from losses, from finished jobs
// of the kind, or guessed; the gain of young jobs has a lower weight.
func TestParamServerOptimusConverges(t *testing.T) {
	losses := scheduler.Losses{Every: 10, Least: 0.001}
	for i := range 20 {
		losses.Values = append(losses.Values, 1/(1+0.2*float64(i))+0.1)
	}
	fitted := loggedLosses{"fitted", losses}
	known := &scheduler.JobState{Job: &spec.Job{ID: "fitted"}, Done: 200}
	left, guessed := newConvergence(fitted).left(t.Context(), known)
	if guessed || left < 50 {
		t.Fatalf("%g steps are left, guessed %v", left, guessed)
	}
	o, space := tableOf(map[paramserver.Counts]float64{n(1, 1): 1, n(1, 2): 2})
	for _, c := range []struct {
		name  string
		done  float64 // of the other job, which is taken to have as many left
		ended float64 // steps of a job like the other that is done, 0 = there is none
		want  []paramserver.Counts
	}{
		{"as young as that a guess of a little more counts less", 1.03 * left, 0, []paramserver.Counts{n(1, 2), n(1, 1)}},
		{"a guess of more counts more", 1.07 * left, 0, []paramserver.Counts{n(1, 1), n(1, 2)}},
		{"like one that is done", left / 9, 3 * left, []paramserver.Counts{n(1, 1), n(1, 2)}},
	} {
		f := packingOf(spec.NodeGroup{Count: 1, Devices: 1, CPUs: 5})
		a, b := idleJob(0, 1, 1), idleJob(0, 1, 1)
		a.Job.ID, a.Done, b.Job.ID, b.Done, b.Arrival = "fitted", known.Done, "other", c.done, 1
		f.Jobs = []*paramserver.PackedJob{a, b}
		s := &scheduler.Snapshot{Now: time.Hour}
		if c.ended > 0 {
			s.Ended = []scheduler.JobState{{Job: b.Job, Done: c.ended}}
		}
		p := &paramServerOptimus{Speeds: paramserver.NewSpeeds(policy.Deps{Oracle: o, Servers: space}), interval: time.Minute, convergence: newConvergence(fitted), young: 0.95, last: -policy.Never}
		if err := p.fill(t.Context(), s, f); err != nil {
			t.Fatal(err)
		}
		if got := []paramserver.Counts{a.Has, b.Has}; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestParamServerOptimusLeastLoaded: a job with room for only one of each kind on the least
// loaded nodes holds it without running, and others continue.
func TestParamServerOptimusLeastLoaded(t *testing.T) {
	o, space := tableOf(map[paramserver.Counts]float64{n(1, 1): 1, n(1, 2): 2})
	f := packingOf(spec.NodeGroup{Count: 1, Devices: 1, CPUs: 5})
	lame, b := idleJob(0, 1, 9), idleJob(0, 1, 1)
	lame.Remaining, b.Remaining, b.Arrival = 10, 10, 1
	f.Jobs = []*paramserver.PackedJob{lame, b}
	p := &paramServerOptimus{Speeds: paramserver.NewSpeeds(policy.Deps{Oracle: o, Servers: space}), leastLoaded: true, last: -policy.Never}
	if err := p.fill(t.Context(), &scheduler.Snapshot{}, f); err != nil {
		t.Fatal(err)
	}
	if lame.Has != paramserver.OneReplica || b.Has != (n(1, 2)) {
		t.Errorf("%v and %v, want a replica alone and %v", lame.Has, b.Has, n(1, 2))
	}
	if f.Settle(); lame.Granted != nil || b.Granted == nil {
		t.Errorf("granted %v and %v", lame.Granted, b.Granted)
	}
}
