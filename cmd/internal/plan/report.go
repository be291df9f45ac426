package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/report"
)

// reportFlags are of plan.
func reportFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "report", Usage: "write a self-contained page with the plans, the Pareto front and the sensitivity curve to `FILE`", DefaultText: "none", Category: command.CategoryOutput},
	}
}

const (
	// reportedPlans is how many plans a report lists at most.
	reportedPlans = 100
	// reportedProbes is the number of measurements in a report without --probe.
	reportedProbes = 3
)

// saveReport writes the page of --report, if there is one. rk is the answer to
// q; if no plan fits it writes nothing.
func saveReport(c *cli.Context, q planRequest, rk planner.Ranking) (err error) {
	if rk.Fitting == 0 {
		return nil
	}
	files, err := command.OpenFiles(c, "report")
	out := files["report"]
	if err != nil || out == nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Discard()) }()
	in, err := reportInput(c, q, rk)
	if err != nil {
		return err
	}
	if err := out.Write(func(w io.Writer) error { return report.WriteHTML(w, in) }); err != nil {
		return err
	}
	fmt.Fprintln(c.App.ErrWriter, "report:", c.String("report"))
	return nil
}

// reportInput collects the parts of a report: the best plans, the curve, the front, the probes.
func reportInput(c *cli.Context, q planRequest, rk planner.Ranking) (in report.Input, err error) {
	best := rk.Choices[0]
	rk.Choices = rk.Choices[:min(len(rk.Choices), cmp.Or(c.Int("top"), reportedPlans), reportedPlans)]
	in = report.Input{Request: q.Request, Ranking: rk, Facts: []report.Fact{
		{Name: "Command", Value: console.ShellLine(append([]string{"pacer"}, os.Args[1:]...)...)},
		{Name: "Performance model", Value: best.Prediction.By},
		{Name: "Pacer", Value: c.App.Version},
	}}
	if err := addParts(&in, q, best); err != nil {
		return in, err
	}
	if in.BeatsBest, err = q.planner.BeatsBest(c.Context, q.Request, rk.Choices[:min(rk.Fitting, len(rk.Choices))]); err != nil {
		return in, err
	}
	r := q.Request
	r.Top = 0
	if r.Objective == planner.MinDevices { // the front and the curve are without the target
		r.Objective = planner.Throughput
	}
	if in.Curve, err = q.planner.Curve(c.Context, r); err != nil {
		return in, err
	}
	r.MinDevices = max(r.MinDevices, 1)
	if in.Front, err = q.planner.Pareto(c.Context, r); err != nil {
		return in, err
	}
	k := reportedProbes
	if c.IsSet("probe") {
		k = c.Int("probe")
	}
	in.Probes, err = q.planner.Probes(c.Context, q.Request, k)
	return in, err
}

// addParts adds the time and memory of a choice by part, if they are known.
func addParts(in *report.Input, q planRequest, best planner.Choice) error {
	if e, ok := q.predictor.(query.Explainer); ok {
		p, err := e.Explain(best.Config)
		if err != nil {
			return err
		}
		for _, s := range query.TimeShares(p) {
			in.Time = append(in.Time, report.Part{What: s.What, Size: s.Size})
		}
	}
	m, err := q.planner.Memory(best.Config)
	if err != nil { // nothing covers it
		return nil
	}
	for _, s := range query.MemoryShares(m.Plan(best.Config.Plan)) {
		if s.Name == "host" {
			in.HostBytes = s.Size * memory.GiB
			continue
		}
		in.Memory = append(in.Memory, report.Part{What: s.What, Size: s.Size * memory.GiB})
	}
	return nil
}
