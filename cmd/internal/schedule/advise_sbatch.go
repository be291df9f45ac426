package schedule

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/child"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live/slurm"
)

// maxSubmission bounds a script or manifest, bytes.
const maxSubmission = 4 << 20

func sbatchStdin(args []string) bool {
	s, err := slurm.ParseSubmission(args)
	return err == nil && s.Stdin
}

// adviseOptions reads --gres, or --accelerator for all types.
func adviseOptions(c *cli.Context) (slurm.Options, error) {
	options, err := slurmOptions(c)
	if a := c.String("accelerator"); a != "" {
		options.NodeType = func(_ string, devices int) (spec.NodeGroup, error) { return nodeType(a, devices) }
	}
	return options, err
}

// readSbatch reads a call of sbatch. A script that sbatch finds in PATH only is not found.
func readSbatch(c *cli.Context, submit *call) (*submission, error) {
	s, err := slurm.ParseSubmission(submit.args[1:])
	if err != nil {
		return nil, err
	}
	script, name := submit.stdin, "standard input"
	switch {
	case s.Wrap != "":
		script, name = []byte("#!/bin/sh\n"+s.Wrap+"\n"), "wrap"
	case !s.Stdin:
		if script, err = query.ReadFile("file", s.Script, maxSubmission); err != nil {
			return nil, fmt.Errorf("advise: %w", err)
		}
		name = filepath.Base(s.Script)
	}
	options, err := adviseOptions(c)
	if err != nil {
		return nil, err
	}
	if err := s.Read(script, options); err != nil {
		return nil, err
	}
	out := *submit
	j := submitted{name: cmp.Or(s.JobName(), name), job: s.Job, managed: s.Managed, by: "its comment", nodes: s.Nodes, launch: script}
	if s.Managed {
		j.set = func(shape spec.Shape, plan spec.Plan) error {
			args, err := s.Set(shape, plan)
			if err == nil {
				out.args = append([]string{submit.args[0]}, args...)
				out.env = []string{child.PlanVariable + "=" + plan.String()}
			}
			return err
		}
	}
	return &submission{jobs: []submitted{j}, submit: func() *call { return &out }}, nil
}
