package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/place"
)

func init() {
	register(Info{
		Name: "synth",
		Doc:  "the composition that would do best from here on with the jobs there are, by belief, found by simulating them all (Blox' synthesizer, EuroSys 2024)",
		Options: []Option{
			{Name: "policies", Default: "fifo/las/srtf", Doc: "to choose among, with + for the colons of options, as las+quantum=60/fifo"},
			{Name: "admissions", Default: "accept-all/load+1.2/load+1.4", Doc: "to choose among; jobs that --admission lets in wait for these"},
			{Name: "placements", Default: "", Doc: "to choose among; none: that of --placement"},
			{Name: "objective", Default: "avg-jct", Doc: "what is best: the least avg-jct, p99-jct, avg-delay or makespan"},
			{Name: "lookahead", Default: "0", Doc: "seconds simulated; who is not done by then ends as soon after as alone. 0: until all are done"},
			{Name: "every", Default: "300", Doc: "seconds at least from one choice to the next"},
			{Name: "hysteresis", Default: "0", Doc: "part by which another composition has to be better to be changed to, in [0, 1]"},
			{Name: "round", Default: "300", Doc: "seconds of the rounds simulated, coarser than the run's to be quick; 0: none"},
		},
		New: newSynth,
	})
}

// synth is the automatic composition of Blox (Agarwal et al., EuroSys 2024, section
// 5.4). When jobs came or ended it simulates every composition of its parts from
// the present on, without jobs to come, and goes on with the one that does best by
// its objective; ties go to the one in use, then to the one named first.
//
// What is simulated is belief: speeds are the oracle's, else those that jobs were
// submitted with (see forward). Candidates are made anew for every look, so that
// what one would have learnt by then it has to learn again.
//
// Differs from Blox, which simulates in every round: nothing is chosen while
// nobody waits, nor when no job came or ended since. A job that one admission rule
// has let in stays in under the next.
type synth struct {
	deps       Deps
	candidates []candidate
	objective  objective
	lookahead  time.Duration
	every      time.Duration
	hysteresis float64
	round      time.Duration

	chosen int // index into candidates, -1 = none yet
	parts  parts
	inside map[spec.JobID]bool // whom it has let in
	known  map[spec.JobID]bool // who was there when it was last asked
	stale  bool                // somebody came or went since it last chose
	at     time.Duration       // when it was last asked
	looked time.Duration       // when it last chose
}

// candidate is a composition that may be chosen.
type candidate struct {
	policy    Spec
	admission string
	placement string // "" = the placer around it
}

func (c candidate) String() string {
	return strings.Join([]string{c.policy.String(), c.admission, cmp.Or(c.placement, "as placed")}, ", ")
}

// parts are what a candidate is made of.
type parts struct {
	policy    scheduler.Policy
	admission scheduler.Admission
}

// make makes the parts of c anew, out of d.
func (c candidate) make(d Deps) (p parts, err error) {
	if c.placement != "" {
		if d.Placer, err = place.New(c.placement, d.Quirks); err != nil {
			return p, err
		}
	}
	if p.admission, err = NewAdmission(c.admission, d); err != nil {
		return p, err
	}
	p.policy, err = New(c.policy, d)
	return p, err
}

// unpaired is an oracle that says nothing of jobs that share devices.
type unpaired struct{ scheduler.Oracle }

func newSynth(d Deps) (scheduler.Policy, error) {
	if _, paired := d.Oracle.(scheduler.Colocator); paired { // compositions are compared by what jobs make alone
		d.Oracle = unpaired{d.Oracle}
	}
	p := &synth{deps: d, chosen: -1, stale: true, at: -1}
	var err error
	if p.candidates, err = d.candidates(); err != nil {
		return nil, err
	}
	if p.objective, err = d.objective(); err != nil {
		return nil, err
	}
	if p.hysteresis, err = d.number("hysteresis", 0, 0, 1); err != nil {
		return nil, err
	}
	for _, o := range []struct {
		name string
		def  time.Duration
		to   *time.Duration
	}{{"lookahead", 0, &p.lookahead}, {"every", 300 * time.Second, &p.every}, {"round", 300 * time.Second, &p.round}} {
		if *o.to, err = d.seconds(o.name, o.def); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// candidates returns every composition of the parts named in the options.
func (d Deps) candidates() ([]candidate, error) {
	var out []candidate
	for _, name := range d.list("policies", "fifo/las/srtf") {
		specs, err := Parse(name)
		if err != nil {
			return nil, err
		}
		if len(specs) != 1 || specs[0].Name == "synth" {
			return nil, fmt.Errorf("cannot choose %q, want policies such as las+quantum=60/fifo, and not itself", name)
		}
		if files := specs[0].Files(); len(files) > 0 {
			return nil, fmt.Errorf("cannot choose %s, which reads %s: candidates learn from nothing but the run", specs[0], files[0])
		}
		for _, admission := range d.list("admissions", "accept-all/load+1.2/load+1.4") {
			for _, placement := range d.list("placements", "") {
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

// list returns the elements of an option that is a list, or of its default.
func (d Deps) list(name, def string) []string {
	text, ok := d.Options[name]
	if !ok {
		text = def
	}
	return strings.Split(strings.ReplaceAll(text, "+", ":"), "/")
}

func (p *synth) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	jobs := s.Jobs()
	p.see(s, jobs)
	due := p.chosen < 0 || p.stale && len(p.candidates) > 1 && s.Now >= p.looked+p.every
	if due && len(s.Waiting) > 0 {
		if err := p.choose(ctx, s, jobs); err != nil {
			return scheduler.Decision{}, err
		}
	}
	if p.chosen < 0 {
		return scheduler.Decision{Keep: true}, nil
	}
	shown, err := p.letIn(ctx, s, jobs)
	if err != nil {
		return scheduler.Decision{}, err
	}
	d, err := p.parts.policy.Decide(ctx, shown)
	if err != nil {
		return d, err
	}
	p.explain(s, &d)
	if next := p.looked + p.every; p.stale && len(p.candidates) > 1 && len(s.Waiting) > 0 && next > s.Now && (d.Wake == 0 || d.Wake > next) {
		d.Wake = next
	}
	return d, nil
}

// see takes notice of who came and who ended. Asked again at the same moment, it
// has seen them.
func (p *synth) see(s *scheduler.Snapshot, jobs []*scheduler.JobState) {
	if s.Now > p.at && len(s.Ended) > 0 {
		p.stale = true
	}
	p.at = s.Now
	known, inside := make(map[spec.JobID]bool, len(jobs)), make(map[spec.JobID]bool, len(jobs))
	for _, j := range jobs {
		id := j.Job.ID
		p.stale = p.stale || !p.known[id]
		known[id] = true
		if p.inside[id] || j.Grant != nil {
			inside[id] = true
		}
	}
	p.known, p.inside = known, inside
}

// choose looks what every candidate would come to, and takes the best.
func (p *synth) choose(ctx context.Context, s *scheduler.Snapshot, jobs []*scheduler.JobState) error {
	p.stale, p.looked = false, s.Now
	values, err := newForward(p, s, jobs).all(ctx)
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

// letIn asks the admission rule in use about those outside, and returns the
// snapshot of those inside then.
func (p *synth) letIn(ctx context.Context, s *scheduler.Snapshot, jobs []*scheduler.JobState) (*scheduler.Snapshot, error) {
	view := scheduler.NewLedger(s.Cluster, nil)
	for _, node := range s.Down {
		view.NodeDown(node)
	}
	var grants []scheduler.Change
	for _, j := range jobs {
		if p.inside[j.Job.ID] {
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
		if p.inside[j.Job.ID] {
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
		p.inside[j.Job.ID] = true
	}
	if len(p.inside) == len(jobs) {
		return s, nil
	}
	shown := view.Snapshot(s.Now)
	shown.Ended, shown.Reasons = s.Ended, s.Reasons
	return shown, nil
}

// explain says which composition reasons are by, and who waits outside of it.
func (p *synth) explain(s *scheduler.Snapshot, d *scheduler.Decision) {
	by := p.candidates[p.chosen].String()
	for j := range d.Unexplained(s) {
		if !p.inside[j.Job.ID] {
			d.Because(s, j.Job.ID, "waits outside")
		}
	}
	for id, why := range d.Why {
		d.Why[id] = by + ": " + why
	}
}
