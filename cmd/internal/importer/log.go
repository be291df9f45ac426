package importer

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/perfmodel/yamlfile"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/trainlog"
)

// logRun is what a log does not say about its run: the file of --config.
type logRun struct {
	config spec.Config
	warmUp int
	format trainlog.Format
	source string
}

// maxRunFile bounds that file, in bytes.
const maxRunFile = 1 << 20

// readLog returns the measurement in the log of a training run; config is a file that describes the run.
func readLog(file, config string) (spec.Measurement, error) {
	run, err := readLogRun(config)
	if err != nil {
		return spec.Measurement{}, err
	}
	f, err := os.Open(file)
	if err != nil {
		return spec.Measurement{}, fmt.Errorf("import log: %w", err)
	}
	defer f.Close()
	l, err := trainlog.Read(f, run.format)
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
func (r *logRun) measurement(l *trainlog.Log) (spec.Measurement, error) {
	c := r.config
	m := spec.Measurement{Config: c, Outcome: spec.OK, Source: r.source, PeakBytes: l.PeakBytes, Env: map[string]string{
		profiler.EnvTiming: string(l.Format), profiler.EnvWarmUp: strconv.Itoa(r.warmUp)}}
	if err := l.Check(c.Plan, c.Seq(), 0); err != nil {
		return m, err
	}
	t, err := l.Time(c.Plan, c.Seq(), r.warmUp, 0)
	if err != nil {
		return m, err
	}
	m.StepSec = t.StepSec
	if l.ReservedBytes > 0 {
		m.Env[profiler.EnvReserved] = strconv.FormatFloat(l.ReservedBytes, 'g', -1, 64)
	}
	switch {
	case l.PeakBytes > 0:
		m.Env[spec.EnvMemKind] = "allocated"
	case l.ReservedBytes > 0:
		m.PeakBytes, m.Env[spec.EnvMemKind] = l.ReservedBytes, "reserved"
	}
	if half := stats.MedianHalfWidth(t.StepSec); half > 0 {
		m.Env[profiler.EnvHalfWidth] = strconv.FormatFloat(half, 'g', -1, 64)
	}
	if len(t.Warnings) > 0 {
		m.Env[profiler.EnvWarning] = strings.Join(t.Warnings, "; ")
	}
	return m, m.Validate()
}

// readLogRun reads the description of a run.
func readLogRun(path string) (logRun, error) {
	text, err := query.ReadFile("config", path, maxRunFile)
	if err != nil {
		return logRun{}, fmt.Errorf("import log: %w", err)
	}
	f := yamlfile.File{Name: path, Package: "import", Kind: "run"}
	top := f.Parse(text)
	r := logRun{warmUp: 5, source: "log"}
	if f.Count() == 0 {
		r.read(top)
	}
	if err := f.Err(); err != nil {
		return r, fail.WithCode(fail.Usage, err)
	}
	return r, nil
}

func (r *logRun) read(top yamlfile.Node) {
	c := &r.config
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
			r.warmUp = n.Whole(1, 1<<30)
		case "format":
			r.format = yamlfile.Word(n, trainlog.Formats()...)
		case "source":
			r.source = n.Text()
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
func (r *logRun) complete(top yamlfile.Node) {
	c := &r.config
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
