package study

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/yamlfile"
	"github.com/pacer-ml/pacer/scheduler/compose"
)

// Bounds of values in a file.
const (
	maxSeeds = 10_000
	maxLoad  = 100
	maxNoise = 3
	maxRuns  = 1_000_000
)

// defaultConfidence of the intervals.
const defaultConfidence = 0.95

// Read reads a study file. file is its name in messages, which have line and column.
// settings are the flags of a simulation that a study may set; the file has '_' for
// '-'. Read does not check the values of flags. The error joins all mistakes.
func Read(file string, text []byte, settings []string) (Study, error) {
	r := &reader{File: yamlfile.File{Name: file, Package: "study", Kind: "study"}}
	for _, s := range settings {
		r.settings = append(r.settings, strings.ReplaceAll(s, "-", "_"))
	}
	top := r.Parse(text)
	if r.Count() == 0 {
		r.study(top)
	}
	if r.Count() == 0 {
		r.check(top)
	}
	return r.s, r.Err()
}

// reader turns the nodes of a file into s. It keeps the nodes that are checked after
// reading.
type reader struct {
	yamlfile.File
	settings []string
	s        Study

	baseline  yamlfile.Node
	baselines []yamlfile.Node // baselines of single schedulers
}

func (r *reader) study(top yamlfile.Node) {
	known := []string{"name", "description", "cluster", "workloads", "policies", "loads", "seeds", "arrivals",
		"noise", "confidence", "baseline"}
	r.s.Arrivals, r.s.Confidence, r.s.Seeds = Recorded, defaultConfidence, []uint64{1}
	r.s.Settings = map[string]string{}
	for _, e := range top.Entries(append(known, r.settings...)...) {
		if !e.Value.Given() {
			r.Fail(e.At, "%s has no value: leave it out for its default", e.Key)
			continue
		}
		switch n := e.Value; e.Key {
		case "name":
			r.s.Name = readName(n)
		case "description":
			r.s.Description = n.Text()
		case "cluster":
			r.s.Cluster = n.Text()
		case "workloads":
			r.workloads(n)
		case "policies":
			r.schedulers(n)
		case "loads":
			r.loads(n)
		case "seeds":
			r.seeds(n)
		case "arrivals":
			r.s.Arrivals = yamlfile.Word(n, Recorded, Poisson)
		case "noise":
			r.s.Noise = n.Number(0, true, maxNoise)
		case "confidence":
			r.s.Confidence = n.Number(0, false, 0.9999)
		case "baseline":
			r.baseline, r.s.Baseline = n, n.Text()
		default:
			r.s.Settings[flagOf(e.Key)] = n.Text()
		}
	}
}

// flagOf returns the flag of a key.
func flagOf(key string) string { return strings.ReplaceAll(key, "_", "-") }

// goodName matches names that are safe in paths.
var goodName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func readName(n yamlfile.Node) string {
	s := n.Text()
	if s != "" && !goodName.MatchString(s) {
		n.Fail("name %q is not 1 to 64 letters, digits, '.', '_' or '-', the first a letter or digit", s)
	}
	return s
}

func (r *reader) workloads(n yamlfile.Node) {
	for _, e := range n.List() {
		w := Workload{}
		if e.IsMapping() {
			for _, k := range e.Entries("name", "jobs") {
				switch k.Key {
				case "name":
					w.Name = readName(k.Value)
				case "jobs":
					w.Jobs = k.Value.Text()
				}
			}
			if w.Jobs == "" {
				e.Fail("no jobs, want FILE[:FORMAT] or synthetic[:KEY=VALUE,...]")
			}
		} else {
			w.Jobs = e.Text()
		}
		switch {
		case w.Name != "":
		case w.Synthetic():
			w.Name = "synthetic"
		default:
			w.Name = strings.TrimSuffix(filepath.Base(w.Jobs), filepath.Ext(w.Jobs))
		}
		if slices.ContainsFunc(r.s.Workloads, func(o Workload) bool { return o.Name == w.Name }) {
			e.Fail("a second workload %s: give it another name", w.Name)
		}
		r.s.Workloads = append(r.s.Workloads, w)
	}
}

func (r *reader) schedulers(n yamlfile.Node) {
	for _, e := range n.List() {
		p := r.scheduler(e)
		if slices.ContainsFunc(r.s.Schedulers, func(o Scheduler) bool { return o.Name == p.Name }) {
			e.Fail("a second %s: give it another name, as in {name: NAME, policy: %s}", p.Name, p.Policy)
		}
		r.s.Schedulers = append(r.s.Schedulers, p)
	}
}

// scheduler reads a policy, or a mapping of a policy or a file with settings.
func (r *reader) scheduler(e yamlfile.Node) Scheduler {
	p := Scheduler{Settings: map[string]string{}}
	if e.IsMapping() {
		for _, k := range e.Entries(append([]string{"name", "policy", "scheduler", "baseline"}, r.settings...)...) {
			switch k.Key {
			case "name":
				p.Name = k.Value.Text()
			case "policy":
				p.Policy = k.Value.Text()
			case "scheduler":
				p.File = k.Value.Text()
			case "baseline":
				p.Baseline = k.Value.Text()
				r.baselines = append(r.baselines, k.Value)
			default:
				p.Settings[flagOf(k.Key)] = k.Value.Text()
			}
		}
	} else {
		p.Policy = e.Text()
	}
	switch {
	case p.File != "":
		p.checkFile(e)
		p.Name = cmp.Or(p.Name, strings.TrimSuffix(filepath.Base(p.File), filepath.Ext(p.File)))
	case p.Policy == "":
		e.Fail("no policy, want one of pacer ls policies")
	case strings.Contains(p.Policy, ","):
		e.Fail("%q is more than one policy: list them one by one", p.Policy)
	}
	p.Name = cmp.Or(p.Name, p.Policy)
	return p
}

// checkFile reports the keys of an entry that belong into its scheduler file.
func (p *Scheduler) checkFile(e yamlfile.Node) {
	for _, key := range compose.Keys {
		if _, set := p.Settings[key]; set || key == "policy" && p.Policy != "" {
			e.Fail("scheduler %s conflicts with %s: set it in the scheduler's file", p.File, key)
		}
	}
}

func (r *reader) loads(n yamlfile.Node) {
	for _, e := range n.List() {
		load := e.Number(0, false, maxLoad)
		if slices.Contains(r.s.Loads, load) {
			e.Fail("load %g is listed twice", load)
		}
		r.s.Loads = append(r.s.Loads, load)
	}
}

// seeds reads a number n of seeds, which stands for 1 to n, or a list of them.
func (r *reader) seeds(n yamlfile.Node) {
	r.s.Seeds = nil
	nodes := n.List()
	if len(nodes) == 1 && nodes[0] == n {
		for i := range n.Whole(1, maxSeeds) {
			r.s.Seeds = append(r.s.Seeds, uint64(i)+1)
		}
		return
	}
	for _, e := range nodes {
		seed := uint64(e.Whole(0, 1<<62))
		if slices.Contains(r.s.Seeds, seed) {
			e.Fail("seed %d is listed twice", seed)
		}
		r.s.Seeds = append(r.s.Seeds, seed)
	}
}

// check reports missing keys, and keys that contradict each other.
func (r *reader) check(top yamlfile.Node) {
	for _, missing := range []struct {
		is   bool
		what string
	}{
		{r.s.Name == "", "name, want a line like name: my-study"},
		{r.s.Cluster == "", "cluster, want a line like cluster: 8x8xA800"},
		{len(r.s.Workloads) == 0, "workloads, want a list like workloads: [jobs.csv]"},
		{len(r.s.Schedulers) == 0, "policies, want a list like policies: [fifo, fifo-backfill]"},
	} {
		if missing.is {
			top.Fail("the study has no %s", missing.what)
		}
	}
	if len(r.s.Schedulers) == 0 {
		return
	}
	if r.s.Baseline == "" {
		r.s.Baseline = r.s.Schedulers[0].Name
	}
	r.checkBaseline(r.baseline, r.s.Baseline)
	for _, n := range r.baselines {
		r.checkBaseline(n, n.Text())
	}
	if n := float64(len(r.s.Workloads)) * float64(max(len(r.s.Loads), 1)) * float64(len(r.s.Schedulers)) * float64(len(r.s.Seeds)); n > maxRuns {
		top.Fail("the study has %.0f runs, want at most %d", n, maxRuns)
	}
}

func (r *reader) checkBaseline(n yamlfile.Node, name string) {
	if !slices.ContainsFunc(r.s.Schedulers, func(p Scheduler) bool { return p.Name == name }) {
		n.Fail("baseline %q is none of the policies: %s", name, strings.Join(r.names(), ", "))
	}
}

func (r *reader) names() []string {
	var out []string
	for _, p := range r.s.Schedulers {
		out = append(out, fmt.Sprintf("%q", p.Name))
	}
	return out
}
