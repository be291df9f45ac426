package campaign

import (
	"context"

	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/executor"
	"github.com/pacer-ml/pacer/profiler/runner"
)

// commandSetup measures with the user's own training command on this machine.
func (o *Options) commandSetup(ctx context.Context, camp profiler.Campaign) (Setup, error) {
	m, watch, notes, err := o.thisMachine(ctx, camp)
	if err != nil {
		return Setup{}, err
	}
	again, stop := interruptedAgain()
	m.Nodes = o.team.Nodes()
	s := Setup{Machine: m, Notes: notes, close: func() { stop(); watch.Close() }}
	ready, err := o.clear(ctx, &s, watch)
	if err != nil {
		return s, err
	}
	ready()
	return s, s.useCommand(m, camp, runner.CommandOptions{Watch: deviceWatch{watch}, Executor: executor.Local{Hurry: again}, Team: o.team})
}

// useCommand makes s measure on m with the command of camp.
func (s *Setup) useCommand(m profiler.Machine, camp profiler.Campaign, o runner.CommandOptions) error {
	cmd := camp.Runner.Command
	m.Framework = cmd.Framework
	if m.Env == nil {
		m.Env = map[string]string{}
	}
	m.Env[profiler.EnvCommand], m.Env[profiler.EnvCommandHash] = cmd.String(), cmd.Hash()
	o.Command, o.Machine, o.Point = cmd, m, camp.Point
	r, err := runner.NewCommand(o)
	if err != nil {
		return err
	}
	m.Lacks = r.Lacks
	s.Machine, s.Runner, s.check = m, r, r.Check
	return nil
}
