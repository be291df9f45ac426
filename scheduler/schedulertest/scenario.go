package schedulertest

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Scenarios runs every scenario file under dir, except those in dir/rapid, where package
// rapid stores the draws of failed random tests. A file is a sequence of commands, each
// followed by its input, a line of dashes and the expected output:
//
//	cluster            groups in the syntax of spec.ParseCluster; cpus=N per node
//	2x4xA
//
//	speeds             possible grants: MODEL SHAPE STEPS/S [ACCELERATOR] [cpus=N]
//	bert 1 1.0         all with OnePlan
//	bert 2 1.9         cpus=N: the speed with N CPUs in all
//
//	jobs               the workload: ID key=value...
//	a model=bert devices=2 steps=100 submit=10 guaranteed
//	b model=bert devices=1 steps=50 on=0:1 done=10 since=0
//
//	decide policy=rubick:price=0.2 now=20 start-cost=60
//	run policy=fifo start-cost=60
//
// Times are in seconds. decide prints the decision, run every event and the result. With
// explain (decide) or explain=ID,... (run) they also print why jobs wait or stay. Keys of
// jobs for decide and run are those of spec.Job:
//
//	model accelerator devices steps duration submit deadline weight guaranteed
//
// Keys for decide alone are those of scheduler.JobState:
//
//	on=NODE:DEVICES+...  the grant of the job; without it the job waits
//	since=T              when it got the grant, or began to wait; default: submit
//	done=N               steps completed
//	attained=N           device-seconds received
//	waited=T             its longest completed wait
//	restarts=N
//
// With -rewrite the expected output of the files selected by -run TestNAME/POLICY is
// replaced. A command that fails is refused then, unless a line of its expected output
// begins with "error: " already.
func Scenarios(t *testing.T, dir string, make func(spec string, oracle scheduler.Oracle) (scheduler.Policy, error)) {
	rewrite := spectest.Rewrite()
	if run := flag.Lookup("test.run").Value.String(); rewrite && !strings.Contains(run, "/") {
		t.Fatalf("-rewrite needs -run %s/POLICY to select what it rewrites; %s/. is everything", t.Name(), t.Name())
	}
	datadriven.Walk(t, dir, func(t *testing.T, path string) {
		if strings.HasPrefix(path, filepath.Join(dir, "rapid")+string(filepath.Separator)) {
			return
		}
		s := &scenario{make: make}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := s.command(t.Context(), d)
			if err != nil {
				out += "error: " + err.Error() + "\n"
				if rewrite && !strings.Contains("\n"+d.Expected, "\nerror: ") {
					t.Fatalf("%s: %s is not rewritten, as it fails: %v; if that is intended, expect a line that begins with \"error: \"", d.Pos, d.Cmd, err)
				}
			}
			return out
		})
	})
}

type scenario struct {
	make    func(spec string, oracle scheduler.Oracle) (scheduler.Policy, error)
	cluster spec.Cluster
	world   World
	jobs    []spec.Job
	states  []*scheduler.JobState // states of jobs
}

func (s *scenario) command(ctx context.Context, d *datadriven.TestData) (string, error) {
	switch d.Cmd {
	case "cluster":
		err := s.readCluster(d)
		return fmt.Sprintf("%d devices on %d nodes\n", s.cluster.Devices(), s.cluster.Nodes()), err
	case "speeds":
		return "", s.lines(d.Input, s.addSpeed)
	case "jobs":
		s.jobs, s.states = nil, nil
		return "", s.lines(d.Input, s.addJob)
	case "decide":
		return s.decide(ctx, d)
	case "run":
		return s.run(ctx, d)
	}
	return "", fmt.Errorf("schedulertest: unknown command %q", d.Cmd)
}

func (s *scenario) readCluster(d *datadriven.TestData) error {
	cpus := 0
	for _, a := range d.CmdArgs {
		var err error
		if cpus, err = strconv.Atoi(strings.Join(a.Vals, ",")); a.Key != "cpus" || err != nil {
			return fmt.Errorf("schedulertest: cluster %s, want cpus=N", a.Key)
		}
	}
	var err error
	s.cluster, err = spec.ParseCluster(strings.TrimSpace(d.Input), func(name string, _ int) (spec.NodeGroup, error) {
		return spec.NodeGroup{Accelerator: spec.Accelerator{Name: name}, CPUs: cpus}, nil
	})
	return err
}

func (s *scenario) lines(input string, f func(fields []string) error) error {
	for sc := bufio.NewScanner(strings.NewReader(input)); sc.Scan(); {
		if fields := strings.Fields(sc.Text()); len(fields) > 0 {
			if err := f(fields); err != nil {
				return fmt.Errorf("schedulertest: %q: %w", sc.Text(), err)
			}
		}
	}
	return nil
}

func (s *scenario) addSpeed(f []string) error {
	cpus, hasCPUs := strings.CutPrefix(f[len(f)-1], "cpus=")
	if hasCPUs {
		f = f[:len(f)-1]
	}
	if len(f) < 3 || len(f) > 4 {
		return fmt.Errorf("want MODEL SHAPE STEPS/S [ACCELERATOR] [cpus=N]")
	}
	shape, err := spec.ParseShape(f[1])
	if err == nil && hasCPUs {
		shape.CPUs, err = strconv.Atoi(cpus)
	}
	if err != nil {
		return err
	}
	rate, err := strconv.ParseFloat(f[2], 64)
	if err != nil {
		return err
	}
	for _, g := range s.cluster.Groups {
		if len(f) == 3 || f[3] == g.Accelerator.Name {
			s.world.Add(f[0], g.Accelerator.Name, OnePlan(shape.Total()), shape, rate)
		}
	}
	return nil
}

func (s *scenario) addJob(f []string) error {
	j := spec.Job{ID: spec.JobID(f[0]), Devices: 1}
	st := &scheduler.JobState{Since: -1}
	for _, item := range f[1:] {
		k, v, _ := strings.Cut(item, "=")
		if err := set(&j, st, k, v); err != nil {
			return err
		}
	}
	j.GlobalBatch, j.Plan = 1, OnePlan(j.Devices)
	st.Remaining = j.Steps - st.Done
	if st.Since < 0 {
		st.Since = j.Submit
	}
	if st.Grant != nil {
		st.Phase, st.FirstRun, st.Ready = scheduler.Running, st.Since, st.Since
		st.Grant.Job, st.Grant.Plan = j.ID, OnePlan(st.Grant.Devices())
	}
	s.jobs = append(s.jobs, j)
	s.states = append(s.states, st)
	return nil
}

func set(j *spec.Job, st *scheduler.JobState, k, v string) (err error) {
	switch k {
	case "model":
		j.Model.Name = v
	case "accelerator":
		j.Accelerator = v
	case "guaranteed":
		j.Guaranteed = true
	case "devices":
		j.Devices, err = strconv.Atoi(v)
	case "steps":
		j.Steps, err = strconv.ParseFloat(v, 64)
	case "duration":
		j.Duration, err = secondsOf(v)
	case "deadline":
		j.Deadline, err = secondsOf(v)
	case "weight":
		j.Weight, err = strconv.ParseFloat(v, 64)
	case "submit":
		j.Submit, err = secondsOf(v)
	case "restarts":
		st.Restarts, err = strconv.Atoi(v)
	case "done":
		st.Done, err = strconv.ParseFloat(v, 64)
	case "attained":
		st.Attained, err = strconv.ParseFloat(v, 64)
	case "waited":
		st.Waited, err = secondsOf(v)
	case "since":
		st.Since, err = secondsOf(v)
	case "on":
		st.Grant, err = grantOf(v)
	default:
		err = fmt.Errorf("unknown key %q, want one of model, accelerator, devices, steps, duration, submit, deadline, weight, guaranteed, on, since, done, attained, waited, restarts", k)
	}
	return err
}

// grantOf reads NODE:DEVICES+NODE:DEVICES...
func grantOf(v string) (*scheduler.Grant, error) {
	g := &scheduler.Grant{}
	var counts []int
	for _, part := range strings.Split(v, "+") {
		node, n, ok := strings.Cut(part, ":")
		a, err1 := strconv.Atoi(node)
		b, err2 := strconv.Atoi(n)
		if !ok || err1 != nil || err2 != nil {
			return nil, fmt.Errorf("%q is not NODE:DEVICES", part)
		}
		g.Slots = append(g.Slots, scheduler.Slot{Node: a, Devices: b})
		counts = append(counts, b)
	}
	g.Shape = spec.NewShape(counts...)
	return g, nil
}

func secondsOf(v string) (time.Duration, error) {
	f, err := strconv.ParseFloat(v, 64)
	return time.Duration(f * float64(time.Second)), err
}

// args are the arguments of decide and run.
type args struct {
	policy         string
	now, startCost time.Duration
	explain        []string // ids of jobs; decide explains all if there is one
}

func (s *scenario) args(d *datadriven.TestData) (scheduler.Policy, args, error) {
	var a args
	for _, c := range d.CmdArgs {
		v := strings.Join(c.Vals, ",")
		var err error
		switch c.Key {
		case "policy":
			a.policy = v
		case "now":
			a.now, err = secondsOf(v)
		case "start-cost":
			a.startCost, err = secondsOf(v)
		case "explain":
			a.explain = strings.Split(v, ",")
		default:
			err = fmt.Errorf("unknown argument %q, want one of policy, now, start-cost, explain", c.Key)
		}
		if err != nil {
			return nil, a, fmt.Errorf("schedulertest: %w", err)
		}
	}
	p, err := s.make(a.policy, s.world.Oracle(0, 0))
	return p, a, err
}

func (s *scenario) decide(ctx context.Context, d *datadriven.TestData) (string, error) {
	p, a, err := s.args(d)
	if err != nil {
		return "", err
	}
	for i, st := range s.states {
		st.Job, st.StartCost = &s.jobs[i], a.startCost
	}
	snapshot := scheduler.NewSnapshot(a.now, s.cluster, s.states)
	snapshot.Reasons = true
	if a.explain != nil {
		snapshot.Explain = s.states
	}
	target, err := p.Decide(ctx, snapshot)
	if err != nil {
		return "", err
	}
	granted := s.granted(&target)
	var b strings.Builder
	for _, st := range s.states {
		g := granted[st.Job.ID]
		verb := "starts"
		switch {
		case g == nil && st.Grant == nil:
			verb = "waits"
		case g == nil:
			verb = "stops"
		case g.Same(st.Grant):
			verb = "stays"
		case st.Grant != nil:
			verb = "moves"
		}
		line(&b, string(st.Job.ID), verb, slots(g), target.Why[st.Job.ID])
	}
	for _, w := range target.Warnings {
		line(&b, "warning", w)
	}
	return b.String(), nil
}

// granted returns the grants after a decision.
func (s *scenario) granted(d *scheduler.Decision) map[spec.JobID]*scheduler.Grant {
	out := map[spec.JobID]*scheduler.Grant{}
	for _, st := range s.states {
		if d.Keep && !slices.Contains(d.Stops, st.Job.ID) {
			out[st.Job.ID] = st.Grant
		}
	}
	for _, g := range d.Grants {
		out[g.Job] = g
	}
	return out
}

func (s *scenario) run(ctx context.Context, d *datadriven.TestData) (string, error) {
	p, a, err := s.args(d)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	observe := func(e sim.Event) {
		line(&b, fmt.Sprintf("%.1f", e.At.Seconds()), string(e.Job.ID), e.Kind.String(), slots(e.Grant), e.Why)
	}
	c := sim.Config{
		Cluster: s.cluster, Jobs: s.jobs, Policy: p, PolicyName: a.policy, Truth: s.world.Truth(s.cluster),
		Costs:   sim.PerStart(func(spec.Job) time.Duration { return a.startCost }),
		Observe: observe,
	}
	if a.explain != nil {
		c.Explain = &sim.Explain{OnEvent: func(e sim.Event) {
			if e.Kind == sim.Waits || e.Kind == sim.Stays {
				observe(e)
			}
		}}
		for _, id := range a.explain {
			c.Explain.Jobs = append(c.Explain.Jobs, spec.JobID(id))
		}
	}
	r, err := sim.Run(ctx, c)
	if err != nil {
		return b.String(), err
	}
	for _, j := range r.Jobs {
		switch {
		case j.Finished:
			line(&b, string(j.Job.ID), fmt.Sprintf("jct %.1f, %d restarts, %.0f device-s", j.JCT().Seconds(), j.Restarts, j.Attained))
		default:
			line(&b, string(j.Job.ID), "unfinished:", j.Rejected+j.Unfinished)
		}
	}
	for _, w := range r.Warnings {
		line(&b, "warning", w)
	}
	return b.String(), nil
}

// line writes the non-empty fields as a line.
func line(b *strings.Builder, fields ...string) {
	sep := ""
	for _, f := range fields {
		if f != "" {
			b.WriteString(sep + f)
			sep = " "
		}
	}
	b.WriteByte('\n')
}

func slots(g *scheduler.Grant) string {
	if g == nil {
		return ""
	}
	out := make([]string, len(g.Slots))
	for i, s := range g.Slots {
		out[i] = fmt.Sprintf("%d:%d", s.Node, s.Devices)
	}
	return strings.Join(out, "+")
}
