package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/colocation"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/measured"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/goodput"
)

// newSource makes the truth or the belief, as role says, of a name such as
// fitted:rubick.
func (s *Simulation) newSource(ctx context.Context, role, name string) (*Source, error) {
	kind, arg, _ := strings.Cut(name, ":")
	source := &Source{Name: name}
	var err error
	switch {
	case name == "duration":
	case kind == "duration":
		source.speeds, err = parseSpeeds(role, name, s.Cluster)
	case kind == "rubick" && (arg == "measured" || arg == "nearest"):
		err = s.readRubick(ctx, source, role, arg == "nearest")
	case kind == "gavel" && arg != "":
		err = s.readGavel(ctx, source, role, arg)
	case kind == "goodput" && arg != "":
		err = s.readGoodput(source, arg)
	case kind == "dl2" && arg != "":
		err = s.readServers(ctx, source, arg)
	case kind == "fitted" && arg != "":
		source.predictor, err = s.fittedPredictor(role, arg)
	default:
		more := ""
		if role == "belief" {
			more = ", online:FAMILY, noisy:SIGMA, perfect"
		}
		err = invalid(role, name, "is not one of duration, duration:TYPE=SPEED,..., rubick:measured, rubick:nearest, gavel:FILE, goodput:DIR, dl2:PATH, fitted:FAMILY%s", more)
	}
	return source, err
}

// newBelief makes the belief of a name.
func (s *Simulation) newBelief(ctx context.Context, name string) (*Source, error) {
	text, learns := strings.CutPrefix(name, "online:")
	if !learns {
		return s.newSource(ctx, "belief", name)
	}
	l, err := parseLearning(text)
	return &Source{Name: name, learning: l}, err
}

// parseSpeeds reads duration:TYPE=SPEED,... of accelerators of the cluster, by any of
// their names.
func parseSpeeds(role, name string, cl spec.Cluster) (map[string]float64, error) {
	speeds := map[string]float64{}
	for _, item := range strings.Split(strings.TrimPrefix(name, "duration:"), ",") {
		accelerator, value, _ := strings.Cut(item, "=")
		if a, err := catalog.Accelerator(accelerator); err == nil {
			accelerator = a.Name
		}
		if _, twice := speeds[accelerator]; twice {
			return nil, invalid(role, name, ": %s is given twice", accelerator)
		}
		v, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil || !(v > 0) || math.IsInf(v, 0):
			return nil, invalid(role, name, ": %q is not TYPE=SPEED with a speed above 0", item)
		case !slices.ContainsFunc(cl.Groups, func(g spec.NodeGroup) bool { return g.Accelerator.Name == accelerator }):
			return nil, invalid(role, name, ": the cluster has no %s", accelerator)
		}
		speeds[accelerator] = v
	}
	return speeds, nil
}

// readRubick makes source answer from the stored measurements of the rubick data set.
func (s *Simulation) readRubick(ctx context.Context, source *Source, role string, nearest bool) error {
	rows, err := s.options.Data.rows(ctx, store.Filter{Sources: []string{"rubick"}})
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return noAnswer(role, source.Name, "the store holds no rubick measurements; run pacer import rubick DIR first")
	}
	t := measured.New(rows)
	source.setTable(t)
	if !nearest {
		source.keys = source.configs
		return nil
	}
	fallback, err := s.fittedPredictor(role, "rubick")
	if err != nil {
		return err
	}
	source.nearest = func() *measured.Nearest { return measured.NewNearest(t, fallback) }
	source.predictor = source.nearest()
	return nil
}

// readGoodput makes source answer from the tables of Pollux or Sia.
func (s *Simulation) readGoodput(source *Source, dir string) error {
	read, err := datasets.SiaTables()
	if err != nil {
		return err
	}
	var devices []goodput.Device
	for _, t := range read {
		devices = append(devices, goodput.Device(t))
	}
	t, err := goodput.Read(os.DirFS(dir), devices)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	source.tables = t.With(s.composition.mode.Parts().Adjustment)
	source.predictor, source.known = source.tables, t.Keys()
	return nil
}

// readServers makes source answer from speeds by workers and parameter servers.
func (s *Simulation) readServers(ctx context.Context, source *Source, path string) error {
	speeds, err := datasets.ReadDL2Speeds(ctx, path)
	if err != nil {
		return err
	}
	warn(&s.options, "skipped", "rows", speeds.Bad)
	source.servers = measured.ListedServers(speeds.Rows)
	if !speeds.Listed {
		if source.servers, err = measured.NewServers(speeds.Rows); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if source.known = source.servers.Keys(); len(source.known) == 0 {
		return fmt.Errorf("%s holds no speeds of jobs with parameter servers", path)
	}
	source.predictor = source.servers
	return nil
}

// readGavel makes source answer from a throughput table. Its jobs run on the number of devices
// they ask for, of any measured type. A belief can be limited to few measured pairs:
// FILE,profiled=N[,references=N].
func (s *Simulation) readGavel(ctx context.Context, source *Source, role, arg string) error {
	path, options, _ := strings.Cut(arg, ",")
	if options != "" && role != "belief" {
		return invalid(role, source.Name, ": only a belief knows few pairs: {belief} gavel:%s", arg)
	}
	rows, err := datasets.ReadGavelTable(ctx, path)
	if err != nil {
		return err
	}
	source.setTable(measured.New(rows))
	source.keys = source.configs
	source.doubts = datasets.GavelDoubts(rows, s.asksFor)
	pairs, err := datasets.ReadGavelPairs(ctx, path)
	if err != nil {
		return err
	}
	if options == "" {
		table := colocation.New(pairs)
		source.pairs = func(uint64) scheduler.Colocator { return table }
		return nil
	}
	return s.estimatePairs(ctx, source, pairs, options)
}

// estimatePairs makes source estimate colocated jobs from few measurements.
func (s *Simulation) estimatePairs(ctx context.Context, source *Source, rows []spec.Colocation, options string) error {
	var o colocation.Options
	given := givenKeys{}
	for _, item := range strings.Split(options, ",") {
		name, value, _ := strings.Cut(item, "=")
		if given.add(name) {
			return invalid("belief", source.Name, ": %s is given twice", name)
		}
		n, err := strconv.Atoi(value)
		to, ok := map[string]*int{"profiled": &o.Profiled, "references": &o.References}[name]
		if !ok || err != nil || n < 1 {
			return invalid("belief", source.Name, ": %q is not profiled=N or references=N with a number above 0", item)
		}
		*to = n
	}
	alone := func(c spec.Config) (float64, error) {
		p, err := source.predictor.Predict(ctx, c)
		return p.Throughput, err
	}
	if _, err := colocation.NewEstimator(rows, alone, o); err != nil {
		return invalidBecause("belief", source.Name, err)
	}
	source.pairs = func(seed uint64) scheduler.Colocator {
		o := o
		o.Seed = seed
		e, _ := colocation.NewEstimator(rows, alone, o) // the seed decides only which pairs are profiled
		return e
	}
	return nil
}

// asksFor reports whether a job of the workload may run c on the cluster.
func (s *Simulation) asksFor(c spec.Config) bool {
	return s.hasAccelerator(c.Accelerator.Name) &&
		slices.ContainsFunc(s.Jobs, func(j spec.Job) bool { return j.Model.Name == c.Model.Name && j.Devices == c.Plan.Devices() })
}

// fittedPredictor returns the fitted models of a family. A family that predicts without a fit
// answers where none is fitted.
func (s *Simulation) fittedPredictor(role, name string) (perfmodel.Predictor, error) {
	fam, err := family.Lookup(name)
	if err != nil {
		return nil, invalidBecause(role, name, fmt.Errorf("fitted:%s: %w", name, err))
	}
	var p perfmodel.Predictor
	if fam.Unfitted != nil {
		p = fam.Unfitted
	}
	if s.options.Data.Fitted != nil {
		reg, err := s.options.Data.Fitted()
		if err != nil {
			return nil, err
		}
		if p, err = reg.Predictor(name, catalog.CanonicalModel); err != nil && !errors.Is(err, registry.ErrNotFound) {
			return nil, err
		}
	}
	if p == nil {
		return nil, noAnswer(role, "fitted:"+name, "no %s model is fitted yet; run pacer fit --family %s first", name, name)
	}
	return p, nil
}
