package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/tempdir"
	"github.com/pacer-ml/pacer/planner/launch"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/executor"
	"github.com/pacer-ml/pacer/profiler/hook"
	"github.com/pacer-ml/pacer/profiler/trainlog"
)

// CommandOptions configure a Command. Command and Machine are required.
type CommandOptions struct {
	Command  profiler.CommandSpec
	Executor profiler.Executor     // nil = executor.Local
	Point    profiler.PointOptions // Timeout and Threads
	Machine  profiler.Machine      // as in TorchrunOptions
	Watch    Watcher               // nil = none
	Team     *Team                 // as in TorchrunOptions
}

// Command measures points with the user's own training command. Package hook times its steps; if it saw none, package
// trainlog reads them from the output. It measures one point at a time; concurrent calls of Run wait for each other.
//
// A command that has {steps} or settings that emit wrote is expected to end by itself after these steps, and to make
// exactly as many. Any other command is ended once its steps are timed.
type Command struct {
	o  CommandOptions
	mu sync.Mutex
}

var _ profiler.Runner = (*Command)(nil)

// NewCommand returns a runner.
func NewCommand(o CommandOptions) (*Command, error) {
	o.Point = o.Point.Defaults()
	switch {
	case len(o.Command.Args) == 0:
		return nil, errors.New("runner: command: there is no command")
	case len(o.Machine.Devices) == 0:
		return nil, errors.New("runner: command: the machine has no devices")
	case o.Command.WarmUp < 1 || o.Command.Timed < 1:
		return nil, fmt.Errorf("runner: command: %d steps of warm-up and %d timed ones, want at least 1 of each", o.Command.WarmUp, o.Command.Timed)
	}
	if o.Executor == nil {
		o.Executor = executor.Local{}
	}
	if o.Watch == nil {
		o.Watch = noWatcher{}
	}
	if o.Point.Threads == 0 && o.Machine.CPU {
		o.Point.Threads = 1
	}
	return &Command{o: o}, nil
}

// Check returns an error if the command would run two points alike: it has no placeholder for what tells them apart.
func (r *Command) Check(points []profiler.Point) error {
	seen := map[string]spec.Config{}
	for _, p := range points {
		args, env := r.o.Command.Expand(p.Config, profiler.Places{Out: "out", Emit: "emit"})
		text := fmt.Sprintf("%q %q %d", args, env, p.Config.Shape.Total())
		if r.o.Command.Emit != "" {
			s, err := r.emit(p.Config)
			if err != nil {
				return err
			}
			text += s.Text
		}
		if other, ok := seen[text]; ok {
			return fmt.Errorf("runner: command: the points %s seq=%d %s and %s seq=%d %s have the same command: it lacks a placeholder for what differs, want one of {%s}",
				other.Model.Name, other.Seq(), other.Plan, p.Config.Model.Name, p.Config.Seq(), p.Config.Plan, strings.Join(profiler.Placeholders(), "} {"))
		}
		seen[text] = p.Config
	}
	return nil
}

// Lacks returns why the framework of emit cannot express c, "" if it can.
func (r *Command) Lacks(c spec.Config) string {
	if r.o.Command.Emit == "" {
		return ""
	}
	if _, err := r.emit(c); err != nil {
		return strings.TrimPrefix(err.Error(), "launch: ")
	}
	return ""
}

func (r *Command) emit(c spec.Config) (launch.Script, error) {
	f, err := launch.Lookup(r.o.Command.Emit)
	if err != nil {
		return launch.Script{}, err
	}
	return f.Emit(c)
}

// Run implements profiler.Runner.
func (r *Command) Run(ctx context.Context, c spec.Config) (spec.Measurement, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return runHere(c, r.o.Machine, func(m *spec.Measurement) error { return r.measure(ctx, m) })
}

// runHere calls measure if the machine has the devices of c, and adds the time that it took.
func runHere(c spec.Config, on profiler.Machine, measure func(*spec.Measurement) error) (spec.Measurement, error) {
	begin := time.Now()
	m := spec.Measurement{Config: c, At: begin.UTC(), Env: map[string]string{}}
	if n, have := c.RunDevices(), len(on.Devices)*max(on.Nodes, 1); n > have {
		m.Outcome, m.Reason = spec.Failed, fmt.Sprintf("plan %s needs %d devices, the machine has %d", c.Plan, n, have)
	} else if err := measure(&m); err != nil {
		return spec.Measurement{}, err
	}
	m.Env[profiler.EnvWall] = number(time.Since(begin).Seconds())
	return m, nil
}

// measure runs the command on the configuration of m and stores the results in m.
func (r *Command) measure(ctx context.Context, m *spec.Measurement) error {
	dir, err := tempdir.New("", "pacer-point-")
	if err != nil {
		return fmt.Errorf("runner: command: %w", err)
	}
	defer dir.Remove()
	var pgid atomic.Int64
	stop := r.o.Watch.Watch(r.devices(m.Config), func() int { return int(pgid.Load()) })
	kills := oomKills()
	end, err := r.launch(ctx, m.Config, dir, func(id int) { pgid.Store(int64(id)) })
	if err == nil {
		end.outOfMemoryKill = oomKills() > kills
		end.read(r.hookOut(dir))
		end.readLog()
	}
	watched := stop(end.timing.Began, end.timing.Ended)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("runner: command: %w", err)
	}
	all, silent, err := r.o.Team.report(ctx, nodeReport{end.exit, end.outOfMemoryKill, watched})
	if err != nil {
		return fmt.Errorf("runner: command: %w", err)
	}
	end.exit, end.outOfMemoryKill = all.Exit, all.OutOfMemoryKill
	end.setOutcome(m)
	addObserved(m, all.Watched)
	warnSilent(m, silent)
	if m.Outcome == spec.OK {
		m.Doubt = cmp.Or(m.Doubt, end.doubt(m.Config.Plan))
	}
	return nil
}

// devices returns those of this node that a point uses.
func (r *Command) devices(c spec.Config) []int {
	return r.o.Machine.Devices[:c.Plan.Devices()/r.o.Team.Nodes()]
}

// hookOut returns the directory that the hook writes to on all nodes.
func (r *Command) hookOut(dir *tempdir.Dir) string { return hook.Out(r.o.Team.path(dir.Path(""), "")) }

// launch runs the command and waits until it ends.
func (r *Command) launch(ctx context.Context, c spec.Config, dir *tempdir.Dir, started func(pgid int)) (commandExit, error) {
	end := commandExit{spec: r.o.Command, config: c, timeout: r.o.Point.Timeout}
	out := r.hookOut(dir)
	vars, err := hook.Write(dir.Path(""), out, r.pythonPath(c))
	at := profiler.Places{Out: r.o.Team.path(dir.Path(""), "out"), Node: r.o.Team.number()}
	if err == nil {
		err = os.MkdirAll(at.Out, 0o700)
	}
	if err == nil && r.o.Command.Emit != "" {
		at.Emit, err = r.writeScript(c, dir)
	}
	if err != nil {
		return end, err
	}
	for try := 1; ; try++ {
		port, err := freePort("127.0.0.1")
		if err != nil {
			return end, err
		}
		meet := r.o.Team.place(port)
		at.Address, at.Port = meet.Address, meet.Port
		args, env := r.o.Command.Expand(c, at)
		cmd := profiler.Command{Args: args, Dir: r.o.Command.Dir, Timeout: r.o.Point.Timeout, Started: started}
		log := trainlog.Reader{Now: time.Now}
		cmd.Output = &log
		cmd.Env = slices.Concat(environment(r.o.Machine, r.devices(c), threads(r.o.Point, c), r.o.Team), r.emitted(at), env, vars)
		end.exit, end.stopped, err = r.execute(ctx, cmd, out)
		end.log, end.logged = log.Log("")
		taken := end.exit.Code != 0 && strings.Contains(strings.ToLower(end.exit.Tail), "address already in use")
		if err != nil || !taken || try == r.o.Team.ports() {
			return end, err
		}
	}
}

// pythonPath returns the PYTHONPATH that the command would have without the hook.
func (r *Command) pythonPath(c spec.Config) string {
	_, env := r.o.Command.Expand(c, profiler.Places{})
	for _, v := range slices.Backward(env) {
		if path, ok := strings.CutPrefix(v, "PYTHONPATH="); ok {
			return path
		}
	}
	return os.Getenv("PYTHONPATH")
}

// writeScript writes the settings of emit and returns the file.
func (r *Command) writeScript(c spec.Config, dir *tempdir.Dir) (string, error) {
	s, err := r.emit(c)
	if err != nil {
		return "", err
	}
	file := dir.Path(s.File)
	return file, os.WriteFile(file, []byte(s.Text), 0o700)
}

// emitted returns the variables that scripts of package launch read.
func (r *Command) emitted(at profiler.Places) []string {
	if r.o.Command.Emit == "" {
		return nil
	}
	return []string{"MASTER_ADDR=" + at.Address, "NODE_RANK=" + strconv.Itoa(at.Node), "MASTER_PORT=" + strconv.Itoa(at.Port),
		"TRAIN_ITERS=" + strconv.Itoa(r.o.Command.Steps())}
}

// pollEvery is the least time between two looks at the steps of a running command, and pollShare the least in terms of the
// time of a look: it takes CPU time from the command.
const pollEvery, pollShare = 200 * time.Millisecond, 200

// execute runs cmd. If the command does not end by itself after its steps, it is ended once all ranks made them, and
// stopped is true.
func (r *Command) execute(ctx context.Context, cmd profiler.Command, out string) (exit profiler.Exit, stopped bool, err error) {
	if r.o.Command.EndsItself() {
		exit, err = r.o.Executor.Run(ctx, cmd)
		return exit, false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var enough atomic.Bool
	polled := make(chan struct{})
	go func() {
		defer close(polled)
		for wait := pollEvery; ; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
			began := time.Now()
			if r.enough(out) {
				enough.Store(true)
				cancel()
			}
			wait = max(pollEvery, time.Since(began)*pollShare)
		}
	}()
	exit, err = r.o.Executor.Run(ctx, cmd)
	cancel()
	<-polled
	return exit, enough.Load(), err
}

// enough reports whether all ranks made the steps of the command. An unreadable file is none: it is read again at the end.
func (r *Command) enough(out string) bool {
	all, err := hook.Read(out)
	if err != nil || len(all) == 0 || len(all) < all[0].World {
		return false
	}
	for _, p := range all {
		if len(p.Steps) < r.o.Command.Steps() {
			return false
		}
	}
	return true
}
