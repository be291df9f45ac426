package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/colocation"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/measured"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/profiler/store"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/goodput"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// world says how fast jobs run: as a truth, to the engine; as a belief, to the
// policies. The two are made separately even when they are the same kind.
type world struct {
	name string
	// speeds are those of the accelerators beside each other, where only the
	// workload's own durations are known: 1 where they are not there.
	speeds map[string]float64
	// predictor is nil when only the workload's own durations are known.
	predictor perfmodel.Predictor
	// pairs makes what knows how fast jobs run that share devices, for every run its
	// own; nil = none may.
	pairs func() scheduler.Colocator
	// keys are the configurations that may be granted; nil = others may be too.
	keys []spec.Config
	// known is what a table holds, configs how those of measurements were run; nil
	// = there is no table.
	known   []spec.Key
	configs []spec.Config
	// served is what is known of jobs with parameter servers; nil = they are others.
	served *measured.Servers
	// tables are those of a goodput world, else nil.
	tables *goodput.Tables
	// learning is a belief that learns while jobs run, else nil.
	learning *learning
	// nearest counts its look-ups, so that every run gets its own.
	nearest func() *measured.Nearest
	// doubts is what it says that is hard to believe of what the jobs ask for.
	doubts []string
}

// truth returns what the engine asks.
func (w world) truth(cl spec.Cluster) sim.Truth {
	switch {
	case w.tables != nil:
		return goodput.NewTruth(w.tables, cl)
	case w.nearest != nil:
		return sim.Predicted{Predictor: w.nearest(), Cluster: cl}
	case w.predictor != nil:
		return sim.Predicted{Predictor: w.predictor, Cluster: cl, Pairs: w.colocator()}
	}
	return sim.Durations{Speeds: w.speeds}
}

// newOracle returns the planner policies ask.
func newOracle(belief, truth world) scheduler.Oracle {
	if belief.tables != nil {
		return goodput.NewOracle(belief.tables)
	}
	p := planner.New(belief.predictor, planner.Options{Space: truth.space()})
	if belief.pairs == nil || truth.pairs == nil {
		return p
	}
	return pairedOracle{p, belief.pairs(), truth.pairs()}
}

// colocator returns what knows how fast jobs run that share devices, nil if none may.
func (w world) colocator() scheduler.Colocator {
	if w.pairs == nil {
		return nil
	}
	return w.pairs()
}

// pairedOracle is a planner that also knows how fast jobs run that share devices:
// of which the truth says which may, and the belief how fast.
type pairedOracle struct {
	*planner.Planner
	belief, truth scheduler.Colocator
}

func (o pairedOracle) Beside(a, b spec.Config) (float64, error) {
	if _, err := o.truth.Beside(a, b); err != nil {
		return 0, err
	}
	return o.belief.Beside(a, b)
}

// Ran tells a belief that learns.
func (o pairedOracle) Ran(a, b spec.Config) bool {
	l, ok := o.belief.(scheduler.PairLearner)
	return ok && l.Ran(a, b)
}

// space is what may be granted where w is the truth, nil = what the planner
// enumerates.
func (w world) space() planner.Space {
	switch {
	case w.tables != nil:
		return goodput.Space{Tables: w.tables}
	case w.keys != nil:
		return planner.NewMeasured(w.keys)
	}
	return nil
}

// resolveWorlds makes truth, belief and what starts cost from the flags, with
// defaults that follow from the workload's format.
func (s *study) resolveWorlds(c *cli.Context, format string) error {
	name := c.String("truth")
	if name == "" {
		switch format {
		case "rubick":
			name = "rubick:measured"
		case "gavel", "gavel-trace":
			return usagef("simulate: a %s workload needs --truth gavel:FILE (a throughput table) or another truth", format)
		case "pollux", "sia":
			return usagef("simulate: jobs of %s train for epochs, not for a time or a number of steps: --truth goodput:DIR, a clone of petuum/adaptdl (branch osdi21-artifact) or siasosp23/artifacts, says how fast", s.workload)
		case "dl2":
			return usagef("simulate: jobs of %s train with parameter servers: --truth dl2:PATH, the directory of ps_speed.csv of pengyanghua/DL2, says how fast", s.workload)
		default:
			name = "duration"
		}
	}
	var err error
	if s.truth, err = s.newWorld(c, "--truth", name); err != nil {
		return err
	}
	fromRubick := strings.HasPrefix(name, "rubick:")
	belief := c.String("belief")
	if belief == "" {
		belief = "perfect"
		if fromRubick {
			belief = "fitted:rubick"
		}
	}
	own := s.parts.mode.Quirks.OwnModels && s.truth.tables != nil
	s.pooled = belief == "pooled"
	switch {
	case s.pooled && !own:
		return usagef("simulate: --belief pooled is of what jobs have seen: it needs --truth goodput:DIR and a --compat with quirk own-models")
	case own && !s.pooled && c.String("belief") != "":
		return usagef("simulate: --belief %s: with quirk own-models of --compat %s policies are told what jobs have seen: leave it out, or pool it with --belief pooled", belief, s.parts.mode.Name)
	}
	if belief == "perfect" || s.pooled {
		belief = name
	}
	if s.belief, err = s.newBelief(c, belief); err != nil {
		return err
	}
	if s.truth.predictor == nil && (s.belief.predictor != nil || s.belief.learning != nil) {
		return usagef("simulate: --truth duration says nothing of other sizes and plans, so --belief %s cannot be used with it", belief)
	}
	if err := s.checkServers(); err != nil {
		return err
	}
	if s.jobs, err = s.prepare(c.Context, s.jobs); err != nil {
		return err
	}
	if s.belief.learning != nil {
		if err := s.belief.learning.profile(c, s); err != nil {
			return err
		}
		if s.perfect, err = s.newWorld(c, "--belief", name); err != nil {
			return err
		}
	}
	def := s.parts.mode.StartCost
	if fromRubick && def == 0 {
		def = rubickStartCost
	}
	return s.readTrouble(c, def)
}

// checkServers reports jobs with parameter servers under a truth that knows nothing of
// them, and others under one that knows of nothing else.
func (s *study) checkServers() error {
	with := func(j spec.Job) bool { return j.Served() }
	switch n := len(slices.DeleteFunc(slices.Clone(s.jobs), func(j spec.Job) bool { return !j.Served() })); {
	case n > 0 && s.truth.served == nil:
		first := s.jobs[slices.IndexFunc(s.jobs, with)].ID
		return usagef("simulate: %s, %s first, train with parameter servers, of which --truth %s knows nothing: use dl2:PATH", spec.Count(n, "job"), first, s.truth.name)
	case n < len(s.jobs) && s.truth.served != nil:
		return usagef("simulate: --truth %s knows jobs with parameter servers alone, %s without among them", s.truth.name, spec.Count(len(s.jobs)-n, "job"))
	}
	for _, g := range s.cluster.Groups {
		if s.truth.served != nil && g.CPUs < 1 {
			return usagef("simulate: --truth %s: parameter servers run on CPUs, how many do nodes of %s have? Such as --cluster 48x2xGTX1080Ti/8cpus", s.truth.name, g.Accelerator.Name)
		}
	}
	return nil
}

// rubickStartCost is the constant of the simulator its authors published
// (AlibabaPAI/reconfigurable-dl-scheduler at commit 80e8524).
const rubickStartCost = 260 * time.Second

// newBelief makes the belief of a name.
func (s *study) newBelief(c *cli.Context, name string) (world, error) {
	text, learns := strings.CutPrefix(name, "online:")
	if !learns {
		return s.newWorld(c, "--belief", name)
	}
	l, err := parseLearning(text)
	return world{name: name, learning: l}, err
}

// newWorld makes the truth or belief of a name such as fitted:rubick.
func (s *study) newWorld(c *cli.Context, flag, name string) (world, error) {
	kind, arg, _ := strings.Cut(name, ":")
	w := world{name: name}
	switch {
	case name == "duration":
		return w, nil
	case kind == "duration":
		var err error
		w.speeds, err = parseSpeeds(flag, arg, s.cluster)
		return w, err
	case kind == "rubick" && (arg == "measured" || arg == "nearest"):
		return s.rubickWorld(c, w, arg == "nearest")
	case kind == "gavel" && arg != "":
		return s.gavelWorld(c, w, flag, arg)
	case kind == "goodput" && arg != "":
		return s.goodputWorld(w, arg)
	case kind == "dl2" && arg != "":
		return w, w.readServers(c, arg)
	case kind == "fitted" && arg != "":
		var err error
		w.predictor, err = fittedPredictor(c, arg)
		return w, err
	}
	return w, usagef("simulate: %s %q is not one of duration, duration:TYPE=SPEED,..., rubick:measured, rubick:nearest, gavel:FILE, goodput:DIR, dl2:PATH, fitted:FAMILY%s", flag, name, map[bool]string{true: ", online:FAMILY, perfect"}[flag == "--belief"])
}

// parseSpeeds reads TYPE=SPEED,... of types of the cluster, by any of their names.
func parseSpeeds(flag, text string, cl spec.Cluster) (map[string]float64, error) {
	speeds := map[string]float64{}
	for _, item := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(item, "=")
		if a, err := catalog.Accelerator(name); err == nil {
			name = a.Name
		}
		if _, twice := speeds[name]; twice {
			return nil, usagef("simulate: %s duration:%s: %s is given twice", flag, text, name)
		}
		v, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil || !(v > 0) || math.IsInf(v, 0):
			return nil, usagef("simulate: %s duration:%s: %q is not TYPE=SPEED with a speed above 0", flag, text, item)
		case !slices.ContainsFunc(cl.Groups, func(g spec.NodeGroup) bool { return g.Accelerator.Name == name }):
			return nil, usagef("simulate: %s duration:%s: the cluster has no %s", flag, text, name)
		}
		speeds[name] = v
	}
	return speeds, nil
}

// rubickWorld looks the stored measurements of the rubick data set up.
func (s *study) rubickWorld(c *cli.Context, w world, nearest bool) (world, error) {
	rows, err := storedRows(c, store.Filter{Sources: []string{"rubick"}})
	if err != nil {
		return w, err
	}
	if len(rows) == 0 {
		return w, &exitError{exitNoAnswer, errors.New("simulate: the store holds no rubick measurements; run pacer import rubick DIR first")}
	}
	t := measured.New(rows)
	w.holds(t)
	if !nearest {
		w.keys = w.configs
		return w, nil
	}
	fallback, err := fittedPredictor(c, "rubick")
	if err != nil {
		return w, err
	}
	w.nearest = func() *measured.Nearest { return measured.NewNearest(t, fallback) }
	w.predictor = w.nearest()
	return w, nil
}

// holds makes w the world of a table.
func (w *world) holds(t *measured.Table) {
	w.predictor, w.configs = t, t.Configs()
	for _, c := range w.configs {
		w.known = append(w.known, c.Key())
	}
	slices.SortFunc(w.known, perfmodel.CompareKeys)
	w.known = slices.Compact(w.known)
}

// goodputWorld reads the tables of Pollux or Sia.
func (s *study) goodputWorld(w world, dir string) (world, error) {
	read, err := datasets.SiaTables()
	if err != nil {
		return w, err
	}
	var devices []goodput.Device
	for _, t := range read {
		devices = append(devices, goodput.Device(t))
	}
	t, err := goodput.Read(os.DirFS(dir), devices)
	if err != nil {
		return w, fmt.Errorf("simulate: %s: %w", dir, err)
	}
	w.tables = t.With(s.parts.mode.Quirks)
	w.predictor, w.known = w.tables, t.Keys()
	return w, nil
}

// readServers makes w the world of speeds by replicas and parameter servers.
func (w *world) readServers(c *cli.Context, path string) error {
	speeds, err := datasets.ReadDL2Speeds(c.Context, path)
	if err != nil {
		return err
	}
	for i, bad := range speeds.Bad {
		if i == maxReported {
			fmt.Fprintf(c.App.ErrWriter, "skipped: %d more rows\n", len(speeds.Bad)-i)
			break
		}
		fmt.Fprintln(c.App.ErrWriter, "skipped:", bad)
	}
	w.served = measured.ListedServers(speeds.Rows)
	if !speeds.Listed {
		if w.served, err = measured.NewServers(speeds.Rows); err != nil {
			return fmt.Errorf("simulate: %s: %w", path, err)
		}
	}
	if w.known = w.served.Keys(); len(w.known) == 0 {
		return fmt.Errorf("simulate: %s holds no speeds of jobs with parameter servers", path)
	}
	w.predictor = w.served
	return nil
}

// gavelWorld reads a throughput table; its jobs run at their own device count,
// on any type measured. A belief may be told to know few of the pairs that share
// devices: FILE,profiled=N[,references=N].
func (s *study) gavelWorld(c *cli.Context, w world, flag, arg string) (world, error) {
	path, options, _ := strings.Cut(arg, ",")
	if options != "" && flag != "--belief" {
		return w, usagef("simulate: %s gavel:%s: what was profiled is the belief's to know: --belief gavel:%s", flag, arg, arg)
	}
	rows, err := datasets.ReadGavelTable(c.Context, path)
	if err != nil {
		return w, err
	}
	w.holds(measured.New(rows))
	w.keys = w.configs
	w.doubts = datasets.GavelDoubts(rows, s.asksFor)
	pairs, err := datasets.ReadGavelPairs(c.Context, path)
	if err != nil {
		return w, err
	}
	if options == "" {
		table := colocation.New(pairs)
		w.pairs = func() scheduler.Colocator { return table }
		return w, nil
	}
	return w, s.estimatePairs(c.Context, &w, pairs, options)
}

// estimatePairs makes w believe of jobs that share devices what follows from few
// measurements of them.
func (s *study) estimatePairs(ctx context.Context, w *world, rows []spec.Colocation, options string) error {
	o := colocation.Options{Seed: s.seed}
	given := once{}
	for _, item := range strings.Split(options, ",") {
		name, value, _ := strings.Cut(item, "=")
		if given.again(name) {
			return usagef("simulate: --belief %s: %s is given twice", w.name, name)
		}
		n, err := strconv.Atoi(value)
		if to, ok := map[string]*int{"profiled": &o.Profiled, "references": &o.References}[name]; !ok || err != nil || n < 1 {
			return usagef("simulate: --belief %s: %q is not profiled=N or references=N with a number above 0", w.name, item)
		} else {
			*to = n
		}
	}
	alone := func(c spec.Config) (float64, error) {
		p, err := w.predictor.Predict(ctx, c)
		return p.Throughput, err
	}
	if _, err := colocation.NewEstimator(rows, alone, o); err != nil {
		return usagef("simulate: --belief %s: %w", w.name, err)
	}
	w.pairs = func() scheduler.Colocator {
		e, _ := colocation.NewEstimator(rows, alone, o) // as before
		return e
	}
	return nil
}

// asksFor tells whether a job of the workload is to run c on the cluster.
func (s *study) asksFor(c spec.Config) bool {
	return slices.ContainsFunc(s.jobs, func(j spec.Job) bool { return j.Model.Name == c.Model.Name && j.Devices == c.Plan.Devices() }) &&
		slices.ContainsFunc(s.cluster.Groups, func(g spec.NodeGroup) bool { return g.Accelerator.Name == c.Accelerator.Name })
}

// fittedPredictor returns the fitted models of a family, or the analytic one,
// which needs no fit.
func fittedPredictor(c *cli.Context, name string) (perfmodel.Predictor, error) {
	fam, err := family.Lookup(name)
	if err != nil {
		return nil, usagef("simulate: fitted:%s: %w", name, err)
	}
	if fam.Unfitted != nil {
		return fam.Unfitted, nil
	}
	reg, err := openRegistry(c)
	if err != nil {
		return nil, err
	}
	p, err := reg.Predictor(name)
	if errors.Is(err, registry.ErrNotFound) {
		return nil, &exitError{exitNoAnswer, fmt.Errorf("simulate: no %s model is fitted yet; run pacer fit --family %s first", name, name)}
	}
	return p, err
}

// parseStartCost reads SECONDS or MODEL=SECONDS,... where a plain number among
// them is for all other models, for which it is otherwise def.
func (s *study) parseStartCost(text string, def time.Duration) error {
	byModel, forAll := map[string]time.Duration{}, false
	for _, item := range strings.Split(text, ",") {
		if text == "" {
			break
		}
		model, number, named := strings.Cut(item, "=")
		if !named {
			number = model
		}
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || !(v >= 0 && v < 1e9) {
			return usagef("simulate: --start-cost %q: %q is not a number of seconds", text, number)
		}
		d := time.Duration(v * float64(time.Second))
		switch {
		case !named:
			def, forAll = d, true
		case !slices.ContainsFunc(s.jobs, func(j spec.Job) bool { return j.Model.Name == model }):
			return usagef("simulate: --start-cost %q: no job trains %s", text, model)
		default:
			byModel[model] = d
		}
	}
	s.trouble.costsText = fmt.Sprintf("%g s", def.Seconds())
	if len(byModel) > 0 {
		s.trouble.costsText += " but " + text
	}
	if costs := s.parts.mode.StartCosts; len(costs) > 0 && !forAll {
		s.trouble.costsText += ", by model as in " + s.parts.mode.Name
		for model, d := range costs {
			if _, given := byModel[model]; !given {
				byModel[model] = d
			}
		}
	}
	s.trouble.costs = sim.PerStart(func(j spec.Job) time.Duration {
		if d, ok := byModel[j.Model.Name]; ok {
			return d
		}
		return def
	})
	return nil
}
