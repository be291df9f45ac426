package importer

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/yamlfile"
	"github.com/pacer-ml/pacer/profiler/runner"
	"github.com/pacer-ml/pacer/profiler/trainlog"
)

// Run is what a training run does not say about itself: the file of --config.
type Run struct {
	Config spec.Config
	WarmUp int             // steps that are left out
	Format trainlog.Format // of its log, "" = what it is
	Source string          // of its row
}

// DefaultWarmUp is the number of steps at the start of a run that are not timed.
const DefaultWarmUp = 5

// maxRunFile bounds that file, in bytes.
const maxRunFile = 1 << 20

// readLog returns the measurement in the log of a training run; config is a file that describes the run.
func readLog(file, config string) (spec.Measurement, error) {
	run, err := ReadRun(config, "log")
	if err != nil {
		return spec.Measurement{}, err
	}
	f, err := os.Open(file)
	if err != nil {
		return spec.Measurement{}, fmt.Errorf("import log: %w", err)
	}
	defer f.Close()
	l, err := trainlog.Read(f, run.Format)
	if err != nil {
		return spec.Measurement{}, fmt.Errorf("import log: %s: %w", file, err)
	}
	m, err := run.measurement(&l)
	if err != nil {
		return m, fmt.Errorf("import log: %s: %w", file, err)
	}
	m.Origin = filepath.ToSlash(filepath.Clean(file))
	if st, err := f.Stat(); err == nil {
		m.At = st.ModTime().UTC()
	}
	return m, nil
}

// measurement returns the row of l.
func (r *Run) measurement(l *trainlog.Log) (spec.Measurement, error) {
	m := runner.Observation{Config: r.Config, WarmUp: r.WarmUp, Log: l}.Measurement()
	m.Source = r.Source
	if m.Outcome != spec.OK {
		return m, errors.New(m.Reason)
	}
	return m, m.Validate()
}

// ReadRun reads the description of a run; source is that of its row unless the file has one.
func ReadRun(path, source string) (Run, error) {
	text, err := query.ReadFile("config", path, maxRunFile)
	if err != nil {
		return Run{}, fmt.Errorf("--config: %w", err)
	}
	f := yamlfile.File{Name: path, Package: "import", Kind: "run"}
	top := f.Parse(text)
	r := Run{WarmUp: DefaultWarmUp, Source: source}
	if f.Count() == 0 {
		r.read(top)
	}
	if err := f.Err(); err != nil {
		return r, fail.WithCode(fail.Usage, err)
	}
	return r, nil
}

func (r *Run) read(top yamlfile.Node) {
	c := &r.Config
	given := map[string]yamlfile.Node{}
	for _, e := range top.Entries("model", "accelerator", "plan", "shape", "seq", "framework", "warmup_steps", "format", "source") {
		given[e.Key] = e.Value
		var err error
		switch n := e.Value; e.Key {
		case "model":
			c.Model, err = catalog.ModelOnHub(n.Text())
		case "accelerator":
			c.Accelerator, err = catalog.AcceleratorOf(n.Text())
		case "plan":
			c.Plan, err = spec.ParsePlan(n.Text())
		case "shape":
			c.Shape, err = spec.ParseShape(n.Text())
		case "seq":
			c.SeqLen = n.Whole(1, 1<<26)
		case "framework":
			c.Framework = n.Text()
		case "warmup_steps":
			r.WarmUp = n.Whole(1, 1<<30)
		case "format":
			r.Format = yamlfile.Word(n, trainlog.Formats()...)
		case "source":
			r.Source = n.Text()
		}
		if err != nil {
			e.Value.Fail("%s: %w", e.Key, err)
		}
	}
	for _, key := range []string{"model", "accelerator", "plan"} {
		if _, ok := given[key]; !ok {
			top.Fail("the run has no %s", key)
			return
		}
	}
	r.complete(top)
}

// complete sets what follows from the rest.
func (r *Run) complete(top yamlfile.Node) {
	c := &r.Config
	c.Plan = c.Plan.Normal()
	c.Plan.Precision = cmp.Or(c.Plan.Precision, c.Accelerator.DefaultPrecision())
	if c.Shape.Total() == 0 {
		c.Shape = spec.NewShape(c.Plan.Devices())
	}
	if err := c.Check(); err != nil {
		top.Fail("%w", err)
		return
	}
	c.Link = query.NodeOf(c.Accelerator).Link
}
