package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/livetest"
	"github.com/pacer-ml/pacer/scheduler/live/slurm"
	"github.com/pacer-ml/pacer/scheduler/live/slurm/slurmtest"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
)

func TestMain(m *testing.M) {
	if name := os.Getenv("PACER_TEST_POLICY"); name != "" {
		if err := control(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// control runs a controller until the process is killed. It writes one thing at a time.
func control(name string) error {
	engine, err := slurm.New(context.Background(), options())
	if err != nil {
		return err
	}
	c, err := live.New(live.Options{
		Cluster: engine, Writers: 1, StartCost: time.Second, Resync: time.Second, StaleAfter: 5 * time.Minute,
		OnEvent: func(e live.Event) {
			fmt.Fprintln(os.Stderr, e.At.Format("15:04:05.000"), e.Object, e.Kind, e.Message)
		},
		Policy: func(spec.Cluster) (scheduler.Policy, error) {
			packed, err := place.Lookup("")
			if err != nil {
				return nil, err
			}
			return builtin.Policies.New(policy.Spec{Name: name}, policy.Deps{Oracle: livetest.Planner{Oracle: place.EvenOracle{Oracle: world().Oracle(0, 1)}, Down: os.Getenv("PACER_TEST_PLANNER")}, Placer: place.Even(packed), Seed: 1})
		},
	})
	if err != nil {
		return err
	}
	return c.Run(context.Background())
}

// The commands of Slurm as pacers have them: one of REAL, with the files of DIR. Some fail, as when slurmctld does not answer,
// and what shows jobs and nodes may be late. An scontrol that writes may also fail after it did, and the process that called
// it is killed after as many writes as left says. What is stopped is written to stops before. If none has failed after four
// late answers, the next one does.
const (
	flaky = `#!/bin/bash
late=$(grep -cs late %[2]s/faults)
if [ $((RANDOM %% 12)) = 0 ] || { [ "${late:-0}" -ge 4 ] && ! grep -q refused %[2]s/faults; }; then
	echo refused >>%[2]s/faults
	echo "error: Unable to contact slurm controller (connect failure)" >&2
	exit 1
fi
`
	shower = flaky + `%[1]s "$@" >%[2]s/shown.$$
code=$?
[ $((RANDOM %% 4)) != 0 ] || { echo late >>%[2]s/faults; sleep 0.$((RANDOM %% 10)); }
cat %[2]s/shown.$$
rm %[2]s/shown.$$
exit $code
`
	killer = flaky + `[ "$1" != requeuehold ] || %[1]s -o show job "${@: -1}" >>%[2]s/stops
%[1]s "$@"
code=$?
case "$1" in
update|release|hold|requeuehold)
	left=$(cat %[2]s/left)
	echo $((left - 1)) >%[2]s/left
	[ "$left" != 1 ] || kill -9 $PPID
	if [ $((RANDOM %% 12)) = 0 ]; then
		echo silent >>%[2]s/faults
		echo "error: Socket timed out on send/recv operation" >&2
		exit 1
	fi ;;
esac
exit $code
`
)

// faultRun is a real Slurm under faults.
type faultRun struct {
	t     *testing.T
	real  *slurmtest.Cluster
	rng   *rand.Rand
	seed  uint64
	log   []byte // of pacers
	dir   string // of the commands that pacers have
	down  string // node, "" = none
	ids   []string
	kills int
}

// pacers runs one controller after the other until ctx is done. Most are killed after some of their requests to Slurm, also
// between the two of a start.
func (r *faultRun) pacers(ctx context.Context, policy string, rng *rand.Rand) {
	exe, err := os.Executable()
	if err != nil {
		r.t.Error(err)
		return
	}
	for name, text := range map[string]string{"scontrol": killer, "squeue": shower, "sinfo": shower} {
		program, err := exec.LookPath(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(r.dir, name), fmt.Appendf(nil, text, program, r.dir), 0o700)
		}
		if err != nil {
			r.t.Error(err)
			return
		}
	}
	for ctx.Err() == nil {
		if err := os.WriteFile(filepath.Join(r.dir, "left"), []byte(strconv.Itoa(1+rng.IntN(7))), 0o600); err != nil {
			r.t.Error(err)
		}
		cmd := exec.CommandContext(ctx, exe)
		cmd.Env = append(os.Environ(), "PACER_TEST_POLICY="+policy, "PACER_TEST_PLANNER="+r.planner(), "PATH="+r.dir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		r.log = append(append(r.log, fmt.Sprintf("pacer %d\n", cmd.Process.Pid)...), out...)
		switch status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); {
		case ctx.Err() != nil:
		case ok && status.Signal() == syscall.SIGKILL:
			r.kills++
		default: // such as a slurmctld that is away
			r.t.Logf("seed %d: %v: %s", r.seed, err, out)
			time.Sleep(200 * time.Millisecond)
		}
	}
}

// watch fails the test if jobs that are released or run were ever started on more devices than a node has.
func (r *faultRun) watch(ctx context.Context) {
	engine, err := slurm.New(ctx, options())
	for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		if err != nil {
			engine, err = slurm.New(ctx, options())
			continue
		}
		s, err := engine.Observe(ctx)
		if err != nil {
			continue
		}
		granted := map[string]int{}
		for _, j := range s.Jobs {
			if j.Phase == live.Held || j.Phase == live.Stopping {
				continue
			}
			for node, n := range j.Record.RunSlots {
				if granted[node] += n; granted[node] > 2 {
					r.t.Errorf("seed %d: %d devices of node %s are granted: %+v", r.seed, granted[node], node, s.Jobs)
					return
				}
			}
		}
	}
}

// run runs a command until it succeeds: slurmctld may be away.
func (r *faultRun) run(args ...string) string {
	var out []byte
	var err error
	for end := time.Now().Add(spectest.Patience(30 * time.Second)); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if out, err = exec.Command(args[0], args[1:]...).CombinedOutput(); err == nil {
			return strings.TrimSpace(string(out))
		}
	}
	r.t.Fatalf("%v: %v: %s", args, err, out)
	return ""
}

// fault changes something that controllers do not do.
func (r *faultRun) fault(kind int) {
	switch kind {
	case 0:
		r.real.RestartController(time.Duration(r.rng.IntN(1500)) * time.Millisecond)
	case 1, 2:
		if r.down == "" {
			r.down = r.real.Nodes[r.rng.IntN(len(r.real.Nodes))]
			r.run("scontrol", "update", "nodename="+r.down, "state=down", "reason=test")
		} else {
			r.up()
		}
	case 3:
		i := r.rng.IntN(len(r.ids))
		r.run("scancel", r.ids[i])
		r.ids = append(r.ids[:i], r.ids[i+1:]...)
	case 4:
		if err := os.WriteFile(r.planner(), nil, 0o600); err != nil {
			r.t.Error(err)
		}
	case 5:
		_ = os.Remove(r.planner())
	}
}

// planner returns the file that exists while the planner does not answer.
func (r *faultRun) planner() string { return filepath.Join(r.dir, "planner-down") }

// stops returns the number of jobs that pacers stopped. It fails the test if one ran with its target.
func (r *faultRun) stops() (n int) {
	text, err := os.ReadFile(filepath.Join(r.dir, "stops"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Error(err)
	}
	for line := range strings.Lines(string(text)) {
		n++
		found := regexp.MustCompile(`AdminComment=(\{\S*\})`).FindStringSubmatch(line)
		if found == nil {
			r.t.Errorf("seed %d: a job without a record is stopped: %s", r.seed, line)
			continue
		}
		if rec, err := live.ParseRecord(found[1]); err != nil || rec.Plan == rec.RunPlan && rec.Slots.String() == rec.RunSlots.String() {
			r.t.Errorf("seed %d: a job is stopped, though it runs with its target: %v %s", r.seed, err, line)
		}
	}
	return n
}

// up takes the node that is down up again. It may have come back with slurmctld.
func (r *faultRun) up() {
	for r.down != "" {
		_ = exec.Command("scontrol", "update", "nodename="+r.down, "state=resume").Run()
		if state := r.run("sinfo", "-h", "-n", r.down, "-o", "%T"); !strings.HasPrefix(state, "down") {
			r.down = ""
		}
	}
}

// states returns the states of the jobs that do not have one of some states.
func (r *faultRun) states(but ...string) error {
	var all error
	for _, id := range r.ids {
		out := r.run("scontrol", "-o", "show", "job", id)
		state, _, _ := strings.Cut(out[strings.Index(out, "JobState="):], " ")
		ok := false
		for _, s := range but {
			ok = ok || state == "JobState="+s
		}
		if !ok {
			all = errors.Join(all, fmt.Errorf("job %s: %s", id, out))
		}
	}
	return all
}

// TestFaults lets jobs arrive on a real Slurm while pacers are killed after their requests, their commands fail or are late,
// slurmctld restarts, a node is lost and comes back, a job is cancelled, and the planner does not answer for a while. No device
// is granted twice, no job is stopped needlessly, and every other job completes. PACER_LIVE_SEED runs one seed, PACER_SOAK many.
func TestFaults(t *testing.T) {
	for _, seed := range livetest.Seeds(t, 1, 20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := &faultRun{t: t, real: slurmtest.Start(t, 2, 1), rng: rand.New(rand.NewPCG(seed, 6)), seed: seed, dir: t.TempDir()}
			policy := livetest.Conforming[seed%uint64(len(livetest.Conforming))]
			began := time.Now()
			ctx, stop := context.WithCancel(t.Context())
			var all sync.WaitGroup
			defer all.Wait()
			defer stop()
			all.Go(func() { r.pacers(ctx, policy, rand.New(rand.NewPCG(seed, 7))) })
			all.Go(func() { r.watch(ctx) })
			faults := r.rng.Perm(6)
			for i := range 8 {
				r.ids = append(r.ids, r.real.Submit(fmt.Sprintf(sleeper, strconv.Itoa(1+r.rng.IntN(4))), "-n1", "-N1", fmt.Sprintf("--gres=gpu:%d", 1+i%2), "--comment=pacer:model=m,batch=1,steps=100"))
				time.Sleep(time.Duration(r.rng.IntN(2000)) * time.Millisecond)
				if i >= 2 && i-2 < len(faults) {
					r.fault(faults[i-2])
				}
			}
			r.up()
			_ = os.Remove(r.planner())
			for end := time.Now().Add(spectest.Patience(240 * time.Second)); r.states("COMPLETED") != nil; time.Sleep(500 * time.Millisecond) {
				if err := r.states("COMPLETED", "PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "REQUEUED"); err != nil {
					t.Fatalf("policy %s: lost: %v", policy, err)
				}
				if time.Now().After(end) {
					t.Fatalf("policy %s: %v", policy, r.states("COMPLETED"))
				}
			}
			stop()
			all.Wait()
			injected, err := os.ReadFile(filepath.Join(r.dir, "faults"))
			text := string(injected)
			t.Logf("policy %s: %d jobs, %d stops, %d kills of pacer, %d refusals, %d late answers, %d writes without one in %v", policy, len(r.ids), r.stops(), r.kills,
				strings.Count(text, "refused"), strings.Count(text, "late"), strings.Count(text, "silent"), time.Since(began).Round(time.Millisecond))
			if t.Failed() {
				t.Logf("pacers:\n%s", r.log)
			}
			if r.kills == 0 || !strings.Contains(text, "refused") || !strings.Contains(text, "late") {
				t.Errorf("pacer was never killed, or no command failed or was late: %v", err)
			}
		})
	}
}
