//go:build !nokubernetes

package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/child"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes"
)

// manifestOf returns the file that a call of kubectl applies, "-" = standard input, and the arguments before and after it.
func manifestOf(args []string) (before []string, file string, after []string, err error) {
	if !slices.Contains(args, "apply") && !slices.Contains(args, "create") {
		return nil, "", nil, errors.New("advise: kubectl without apply or create")
	}
	found := 0
	for i, a := range args {
		for _, flag := range []string{"--filename", "-f"} {
			value, ok := strings.CutPrefix(a, flag)
			switch {
			case !ok || value != "" && flag == "--filename" && value[0] != '=':
				continue
			case value != "":
				before, file, after = args[:i], strings.TrimPrefix(value, "="), args[i+1:]
			case i+1 < len(args):
				before, file, after = args[:i], args[i+1], args[i+2:]
			}
			found++
		}
	}
	if found != 1 || file == "" {
		return nil, "", nil, errors.New("advise: kubectl wants one file by -f to be understood")
	}
	return before, file, after, nil
}

func kubectlStdin(args []string) bool {
	_, file, _, err := manifestOf(args)
	return err == nil && file == "-"
}

// readKubectl reads a call of kubectl apply or create.
func readKubectl(_ *cli.Context, submit *call) (*submission, error) {
	before, file, after, err := manifestOf(submit.args[1:])
	if err != nil {
		return nil, err
	}
	text := submit.stdin
	if file != "-" {
		if text, err = query.ReadFile("file", file, maxSubmission); err != nil {
			return nil, fmt.Errorf("advise: %w", err)
		}
	}
	m, err := kubernetes.ReadManifest(text, kubernetes.Options{Model: catalog.Model})
	if err != nil {
		return nil, err
	}
	out, set := *submit, false
	var jobs []submitted
	for i := range m.Jobs {
		s := &m.Jobs[i]
		j := submitted{name: s.Name, job: s.Job, managed: s.Managed, by: "its annotations", nodes: s.Pods, err: s.Err}
		if len(s.Command) > 0 {
			text, err := child.Quote(s.Command)
			j.launch, j.err = []byte("#!/bin/sh\n"+text+"\n"), errors.Join(j.err, err)
		}
		if s.Managed {
			j.set = func(shape spec.Shape, plan spec.Plan) error {
				err := m.Set(s, shape, plan)
				set = set || err == nil
				return err
			}
		}
		jobs = append(jobs, j)
	}
	return &submission{jobs, func() *call {
		if set {
			out.stdin = []byte(m.String())
			out.args = slices.Concat(submit.args[:1], before, []string{"-f", "-"}, after)
		}
		return &out
	}}, nil
}
