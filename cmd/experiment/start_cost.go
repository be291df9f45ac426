package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// readCosts reads Costs, or StartCost if that is not set.
func (s *Simulation) readCosts(f *failures, startCost time.Duration) (err error) {
	text := s.options.Costs
	kind, options, _ := strings.Cut(text, ":")
	switch {
	case text == "":
		return s.parseStartCost(f, s.options.StartCost, startCost)
	case s.options.StartCost != "":
		return invalidBecause("costs", text, fmt.Errorf("{costs} and {start_cost} both say what a start costs: leave one out"))
	case isTable(text):
		err = s.readCostTable(f, text)
	case kind == "state":
		f.costs, err = stateCosts(text, options)
	default:
		err = invalid("costs", text, "is neither a FILE.csv nor state[:restart=S][:gbytes=G]")
	}
	if err != nil {
		return err
	}
	f.costsText = text
	s.failures = *f
	return s.checkCosts()
}

func (s *Simulation) readCostTable(f *failures, path string) error {
	r, err := f.readTable("costs", path)
	if err != nil {
		return err
	}
	table, err := sim.ReadCosts(r, path)
	if err != nil {
		return invalidBecause("costs", path, err)
	}
	f.costs = table
	return nil
}

// stateCosts reads restart=S and gbytes=G.
func stateCosts(text, options string) (*sim.StateCosts, error) {
	costs, given := &sim.StateCosts{}, givenKeys{}
	for _, o := range strings.Split(options, ":") {
		key, value, _ := strings.Cut(o, "=")
		if given.add(key) {
			return nil, invalid("costs", text, ": %s is given twice", key)
		}
		v, err := strconv.ParseFloat(value, 64)
		switch good := err == nil && v > 0 && v < 1e9; {
		case options == "":
		case key == "restart" && good:
			costs.RestartSec = v
		case key == "gbytes" && good:
			costs.NodeBps = v * 1e9
		default:
			return nil, invalid("costs", text, ": %q is neither restart=SECONDS nor gbytes=G, numbers above 0", o)
		}
	}
	return costs, nil
}

// checkCosts checks that the costs of every job are known.
func (s *Simulation) checkCosts() error {
	text := s.failures.costsText
	switch costs := s.failures.costs.(type) {
	case *sim.CostTable:
		if missing := costs.Missing(s.models(func(spec.Model) bool { return true })); len(missing) > 0 {
			return invalid("costs", text, "has no row for %s: add one for each, or one for model * that is for all others", modelList(missing))
		}
	case *sim.StateCosts:
		if unknown := s.models(func(m spec.Model) bool { return !(m.Params() > 0) }); len(unknown) > 0 {
			return invalid("costs", text, ": the size of %s is not known: name models of pacer ls models in the workload, or give a FILE.csv of costs", modelList(unknown))
		}
	}
	return nil
}

// models returns the names of the jobs' models that of selects, each once.
func (s *Simulation) models(of func(spec.Model) bool) []string {
	var out []string
	for i := range s.Jobs {
		if m := &s.Jobs[i].Model; of(*m) {
			out = append(out, m.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Models returns the names of the jobs' models, each once, sorted.
func (s *Simulation) Models() []string { return s.models(func(spec.Model) bool { return true }) }

// modelList writes names of models for a message.
func modelList(models []string) string {
	for i, m := range models {
		models[i] = cmp.Or(m, `"" (jobs without a model)`)
	}
	return strings.Join(models, ", ")
}

// parseStartCost reads SECONDS or MODEL=SECONDS,... where a plain number is for all other
// models; def is for them if there is none.
func (s *Simulation) parseStartCost(f *failures, text string, def time.Duration) error {
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
			return invalid("start-cost", text, ": %q is not a number of seconds", number)
		}
		d := time.Duration(v * float64(time.Second))
		switch {
		case !named:
			def, forAll = d, true
		case !slices.ContainsFunc(s.Jobs, func(j spec.Job) bool { return j.Model.Name == model }):
			return invalid("start-cost", text, ": no job trains %s", model)
		default:
			byModel[model] = d
		}
	}
	f.costsText = fmt.Sprintf("%g s", def.Seconds())
	if len(byModel) > 0 {
		f.costsText += " but " + text
	}
	if costs := s.composition.mode.StartCosts; len(costs) > 0 && !forAll {
		f.costsText += ", by model as in " + s.composition.mode.Name
		for model, d := range costs {
			if _, given := byModel[model]; !given {
				byModel[model] = d
			}
		}
	}
	f.costs = sim.PerStart(func(j spec.Job) time.Duration {
		if d, ok := byModel[j.Model.Name]; ok {
			return d
		}
		return def
	})
	return nil
}
