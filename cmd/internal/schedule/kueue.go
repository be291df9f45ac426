//go:build !nokubernetes

package schedule

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"
	"k8s.io/client-go/dynamic"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes"
)

// answerKueue answers the admission checks of Kueue until the program ends.
func answerKueue(c *cli.Context) error {
	for _, flag := range []string{"policy", "placement", "start-cost", "max-restarts-per-hour", "metrics", "record", "advise", "once", "gres", "partition", "lock"} {
		if c.IsSet(flag) {
			return fail.Usagef("schedule: --%s has no meaning with --on kueue, where Kueue decides which jobs run", flag)
		}
	}
	config, err := kubeConfig(c)
	if err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	oracle, err := newEstimates(c)
	if err != nil {
		return err
	}
	go oracle.watch(c.Context, refitCheck)
	plans := &adviser{resolver: oracle.resolver, oracle: oracle}
	plan := func(ctx context.Context, j spec.Job, shape spec.Shape) (planner.Choice, error) {
		oracle.refitted()
		return plans.plan(ctx, j, shape)
	}
	admission, err := kubernetes.NewAdmission(client, kubernetes.AdmissionOptions{
		Namespace: c.String("namespace"), Model: catalog.Model, Plan: plan, ReadOnly: c.Bool("dry-run"),
		OnAnswer: answerPrinter(c.App.Writer, command.Global(c, "output") == "json", c.Bool("dry-run")),
	})
	if err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	if c.Bool("dry-run") {
		if err := admission.Run(c.Context); err != nil {
			return fmt.Errorf("schedule: %w", err)
		}
		return nil
	}
	lease, leaseClient, err := leaseOf(c, config, "pacer-admission")
	if err != nil {
		return err
	}
	return leadByLease(c.Context, c.App.ErrWriter, leaseClient, lease, false, admission.Run)
}

// plan returns the best plan of a job on its accelerator and a shape.
func (a *adviser) plan(ctx context.Context, j spec.Job, shape spec.Shape) (planner.Choice, error) {
	r, _, err := a.request(ctx, &submitted{name: string(j.ID), job: j, managed: true, by: "its annotations", nodes: shape.Nodes()})
	if err != nil {
		return planner.Choice{}, err
	}
	return a.oracle.Best(ctx, r)
}

// answerPrinter writes a line per answer, or a JSON object.
func answerPrinter(w io.Writer, asJSON, dry bool) func(kubernetes.Answer) {
	write := eventPrinter(w, asJSON)
	return func(a kubernetes.Answer) {
		write(live.Event{At: time.Now(), Object: "workload " + a.Workload, Kind: live.EventKind(a.State), Message: a.Message, DryRun: dry})
	}
}
