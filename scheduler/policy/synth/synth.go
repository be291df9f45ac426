package synth

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/admission"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Info is the registry entry of policy synth.
var Info = policy.Info{
	Name:    "synth",
	Doc:     "automatic composition: simulates every combination of policy, admission rule and placement with the present jobs, and uses the best (Blox's synthesizer, EuroSys 2024)",
	Options: options,
	New:     newSynth,
}

var options = []policy.Option{
	{Name: "policies", Default: "fifo/las/srtf", Example: "las+quantum=60/fifo", Doc: "policies to choose from, with + for the colons of options"},
	{Name: "admissions", Default: "accept-all/load+1.2/load+1.4", Example: "accept-all/load+2", Doc: "admission rules to choose from; jobs that --admission admits wait for these"},
	{Name: "placements", Default: "", Example: "packed/spread", Doc: "placements to choose from; none: that of --placement"},
	{Name: "objective", Default: "avg-jct", Example: "makespan", Doc: "objective to minimise: avg-jct, p99-jct, avg-delay or makespan"},
	{Name: "lookahead", Default: "0", Unit: "s", Max: 1e9, Doc: "seconds simulated; a job that is not done by then is assumed to end after the time it takes alone. 0: until all are done"},
	{Name: "every", Default: "300", Unit: "s", Max: 1e9, Doc: "least seconds between two choices"},
	{Name: "hysteresis", Default: "0", Max: 1, Doc: "relative improvement needed to change the composition, in [0, 1]"},
	{Name: "round", Default: "300", Unit: "s", Max: 1e9, Doc: "seconds of the simulated rounds; longer is faster. 0: none"},
}

// synth is the automatic composition of Blox (Agarwal et al., EuroSys 2024, section 5.4).
// When a job arrives or ends it simulates every composition from the present state, without
// future arrivals, and continues with the best by its objective. Ties go to the one in use,
// then to the first in the options.
//
// Simulations use predicted speeds, else submitted durations (see rollout). They start from
// new policies, without what a policy learned before.
//
// Differs from Blox, which simulates in every round: synth keeps its composition while no
// job waits, or no job arrived or ended. A job that was admitted stays admitted when the
// admission rule changes.
type synth struct {
	deps       policy.Deps
	candidates []candidate
	objective  objective
	lookahead  time.Duration
	every      time.Duration
	hysteresis float64
	round      time.Duration

	chosen    int // index into candidates, -1 = none yet
	parts     parts
	admitted  map[spec.JobID]bool // jobs it has admitted
	present   map[spec.JobID]bool // jobs at the last decision
	stale     bool                // a job arrived or ended since the last choice
	decidedAt time.Duration       // time of the last decision
	chosenAt  time.Duration       // time of the last choice
}

// candidate is a composition that may be chosen.
type candidate struct {
	policy    policy.Spec
	admission string
	placement string // "" = Deps.Placer
}

func (c candidate) String() string {
	return strings.Join([]string{c.policy.String(), c.admission, cmp.Or(c.placement, "as placed")}, ", ")
}

// parts are the policy and admission rule of a composition.
type parts struct {
	policy    scheduler.Policy
	admission scheduler.Admission
}

// make returns new parts for c.
func (c candidate) make(d policy.Deps) (p parts, err error) {
	if c.placement != "" {
		if d.Placer, err = place.Lookup(c.placement); err != nil {
			return p, err
		}
	}
	if p.admission, err = admission.New(c.admission, d); err != nil {
		return p, err
	}
	p.policy, err = d.Registry.New(c.policy, d)
	return p, err
}

// unpaired hides that an oracle has speeds of pairs of jobs.
type unpaired struct{ scheduler.Oracle }

func newSynth(d policy.Deps) (scheduler.Policy, error) {
	if _, paired := d.Oracle.(scheduler.Colocator); paired { // simulations have no colocated jobs
		d.Oracle = unpaired{d.Oracle}
	}
	p := &synth{deps: d, chosen: -1, stale: true, decidedAt: -1}
	var err error
	v := d.Values(options)
	if p.candidates, err = candidatesOf(d, v); err != nil {
		return nil, err
	}
	if p.objective, err = parseObjective(v.Text("objective")); err != nil {
		return nil, err
	}
	p.hysteresis, p.lookahead, p.every, p.round = v.Float("hysteresis"), v.Duration("lookahead"), v.Duration("every"), v.Duration("round")
	return p, v.Err()
}

// candidatesOf returns every composition of the parts named in the options.
func candidatesOf(d policy.Deps, v *policy.Values) ([]candidate, error) {
	var out []candidate
	for _, name := range list(v.Text("policies")) {
		specs, err := d.Registry.Parse(name)
		if err != nil {
			return nil, err
		}
		if len(specs) != 1 || specs[0].Name == "synth" {
			return nil, fmt.Errorf("policies: %q is not a policy to choose from, want a list such as las+quantum=60/fifo without synth", name)
		}
		if files := d.Registry.Files(specs[0]); len(files) > 0 {
			return nil, fmt.Errorf("policies: %s reads file %s, which synth does not support", specs[0], files[0])
		}
		for _, admission := range list(v.Text("admissions")) {
			for _, placement := range list(v.Text("placements")) {
				c := candidate{specs[0], admission, placement}
				if _, err := c.make(d); err != nil {
					return nil, fmt.Errorf("%w (of synth: %s)", err, c)
				}
				out = append(out, c)
			}
		}
	}
	return out, nil
}

// list returns the elements of an option that is a list.
func list(text string) []string { return strings.Split(strings.ReplaceAll(text, "+", ":"), "/") }

// Decide chooses a composition if a job arrived or ended, admits jobs by its admission rule,
// and returns the decision of its policy for the admitted jobs.
func (p *synth) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	jobs := s.Jobs()
	p.observe(s, jobs)
	due := p.chosen < 0 || p.stale && len(p.candidates) > 1 && s.Now >= p.chosenAt+p.every
	if due && len(s.Waiting) > 0 {
		if err := p.choose(ctx, s, jobs); err != nil {
			return scheduler.Decision{}, err
		}
	}
	if p.chosen < 0 {
		return scheduler.Decision{Keep: true}, nil
	}
	shown, err := p.admit(ctx, s, jobs)
	if err != nil {
		return scheduler.Decision{}, err
	}
	d, err := p.parts.policy.Decide(ctx, shown)
	if err != nil {
		return d, err
	}
	p.explain(s, &d)
	if next := p.chosenAt + p.every; p.stale && len(p.candidates) > 1 && len(s.Waiting) > 0 && next > s.Now && (d.Wake == 0 || d.Wake > next) {
		d.Wake = next
	}
	return d, nil
}

// observe records arrivals and ends. It is idempotent within an instant.
func (p *synth) observe(s *scheduler.Snapshot, jobs []*scheduler.JobState) {
	if s.Now > p.decidedAt && len(s.Ended) > 0 {
		p.stale = true
	}
	p.decidedAt = s.Now
	known, inside := make(map[spec.JobID]bool, len(jobs)), make(map[spec.JobID]bool, len(jobs))
	for _, j := range jobs {
		id := j.Job.ID
		p.stale = p.stale || !p.present[id]
		known[id] = true
		if p.admitted[id] || j.Grant != nil {
			inside[id] = true
		}
	}
	p.present, p.admitted = known, inside
}

// choose simulates every candidate and takes the best.
func (p *synth) choose(ctx context.Context, s *scheduler.Snapshot, jobs []*scheduler.JobState) error {
	p.stale, p.chosenAt = false, s.Now
	values, err := newRollout(p, s, jobs).all(ctx)
	if err != nil {
		return err
	}
	best := slices.Index(values, slices.Min(values))
	if best == p.chosen || p.chosen >= 0 && !(values[best] < values[p.chosen]*(1-p.hysteresis)) {
		return nil
	}
	p.chosen = best
	p.parts, err = p.candidates[best].make(p.deps)
	return err
}

// admit applies the present admission rule to jobs that are not admitted yet, and returns
// the snapshot of the admitted jobs.
func (p *synth) admit(ctx context.Context, s *scheduler.Snapshot, jobs []*scheduler.JobState) (*scheduler.Snapshot, error) {
	view := scheduler.NewLedger(s.Cluster, nil)
	for _, node := range s.Down {
		view.NodeDown(node)
	}
	var grants []scheduler.Change
	for _, j := range jobs {
		if p.admitted[j.Job.ID] {
			c := *j
			c.Grant = nil
			view.Enter(&c)
			if j.Grant != nil {
				grants = append(grants, scheduler.Change{Job: &c, To: j.Grant})
			}
		}
	}
	if err := view.Apply(grants); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	for _, g := range grants {
		g.Job.Grant = g.To
	}
	blocked := map[string]bool{}
	for _, j := range jobs {
		if p.admitted[j.Job.ID] {
			continue
		}
		line := "job " + string(j.Job.ID)
		if h, ok := p.parts.admission.(scheduler.Holder); ok {
			line = "line " + h.Line(j.Job)
		}
		if blocked[line] {
			continue
		}
		ok, _, err := p.parts.admission.Admit(ctx, view.Snapshot(s.Now), *j.Job)
		if err != nil {
			return nil, err
		}
		if !ok {
			blocked[line] = true
			continue
		}
		c := *j
		view.Enter(&c)
		p.admitted[j.Job.ID] = true
	}
	if len(p.admitted) == len(jobs) {
		return s, nil
	}
	shown := view.Snapshot(s.Now)
	shown.Ended, shown.Reasons = s.Ended, s.Reasons
	return shown, nil
}

// explain adds the composition to reasons, and the reason of jobs that are not admitted.
func (p *synth) explain(s *scheduler.Snapshot, d *scheduler.Decision) {
	by := p.candidates[p.chosen].String()
	for j := range d.Unexplained(s) {
		if !p.admitted[j.Job.ID] {
			d.Because(s, j.Job.ID, "not admitted yet")
		}
	}
	for id, why := range d.Why {
		d.Why[id] = by + ": " + why
	}
}
