package main

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
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/livetest"
	"github.com/pacer-ml/pacer/scheduler/live/slurm"
	"github.com/pacer-ml/pacer/scheduler/live/slurm/slurmtest"
)

// The commands of Slurm as pacers have them: one of REAL, with the files of DIR. Some fail, as when slurmctld does not answer,
// and what shows jobs and nodes may be late. An scontrol that writes may also fail after it did, and the process that called
// it is killed after as many writes as last says, unless it is dead and another may have its process ID. What is stopped is
// written to stops before. If none has failed after four late answers, the next one does.
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
	echo >>%[2]s/writes
	read -r _ _ _ parent _ </proc/$$/stat
	[ $(wc -l <%[2]s/writes) -lt $(cat %[2]s/last) ] || [ $parent != $PPID ] || kill -9 $PPID
	if [ $((RANDOM %% 12)) = 0 ]; then
		echo silent >>%[2]s/faults
		echo "error: Socket timed out on send/recv operation" >&2
		exit 1
	fi ;;
esac
exit $code
`
)

// slurmFaults is a real Slurm under faults.
type slurmFaults struct {
	t       *testing.T
	real    *slurmtest.Cluster
	rng     *rand.Rand
	dir     string // of the commands that pacers have
	down    string // node, "" = none
	ids     []string
	planner *faultPlanner
}

// commandDir returns a directory that the test removes at its end, again while commands of a killed pacer still write there.
func commandDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "pacer-faults-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 100 {
			if err = os.RemoveAll(dir); err == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Error(err)
	})
	return dir
}

// wrap writes the commands that pacers have.
func (r *slurmFaults) wrap() {
	for name, text := range map[string]string{"scontrol": killer, "squeue": shower, "sinfo": shower} {
		program, err := exec.LookPath(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(r.dir, name), fmt.Appendf(nil, text, program, r.dir), 0o700)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// watch fails the test if jobs that are released or run were ever started on more devices than a node has.
func (r *slurmFaults) watch(ctx context.Context) {
	options := slurm.Options{
		Model: func(name string) (spec.Model, error) { return spec.Model{Name: name}, nil },
		NodeType: func(gres string, devices int) (spec.NodeGroup, error) {
			return spec.NodeGroup{Devices: devices, Accelerator: spec.Accelerator{Name: gres}}, nil
		},
	}
	engine, err := slurm.New(ctx, options)
	for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		if err != nil {
			engine, err = slurm.New(ctx, options)
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
					r.t.Errorf("%d devices of node %s are granted: %+v", granted[node], node, s.Jobs)
					return
				}
			}
		}
	}
}

// run runs a command until it succeeds: slurmctld may be away.
func (r *slurmFaults) run(args ...string) string {
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
func (r *slurmFaults) fault(kind int) {
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
		r.planner.down(r.rng.IntN(2) == 0)
	case 5:
		r.planner.up()
	}
}

// stops returns the number of jobs that pacers stopped. It fails the test if one ran with its target.
func (r *slurmFaults) stops() (n int) {
	text, err := os.ReadFile(filepath.Join(r.dir, "stops"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Error(err)
	}
	for line := range strings.Lines(string(text)) {
		n++
		found := regexp.MustCompile(`AdminComment=(\{\S*\})`).FindStringSubmatch(line)
		if found == nil {
			r.t.Errorf("a job without a record is stopped: %s", line)
			continue
		}
		if rec, err := live.ParseRecord(found[1]); err != nil || rec.Plan == rec.RunPlan && rec.Slots.String() == rec.RunSlots.String() {
			r.t.Errorf("a job is stopped, though it runs with its target: %v %s", err, line)
		}
	}
	return n
}

// up takes the node that is down up again. It may have come back with slurmctld.
func (r *slurmFaults) up() {
	for r.down != "" {
		_ = exec.Command("scontrol", "update", "nodename="+r.down, "state=resume").Run()
		if state := r.run("sinfo", "-h", "-n", r.down, "-o", "%T"); !strings.HasPrefix(state, "down") {
			r.down = ""
		}
	}
}

// left returns an error while a job has not ended, and fails the test if one is gone or failed.
func (r *slurmFaults) left() (left error) {
	state := map[string]string{}
	for line := range strings.Lines(r.run("scontrol", "-o", "show", "job")) {
		if found := regexp.MustCompile(`JobId=(\d+) .*JobState=(\w+)`).FindStringSubmatch(line); found != nil {
			state[found[1]] = found[2]
		}
	}
	for _, id := range r.ids {
		switch state[id] {
		case "COMPLETED":
		case "PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "REQUEUED":
			left = errors.Join(left, fmt.Errorf("job %s: %s", id, r.run("scontrol", "-o", "show", "job", id)))
		default:
			r.t.Fatalf("job %s is lost: state %q of %v\n%s", id, state[id], state, r.real.Log("JobId="+id+" "))
		}
	}
	return left
}

// slurmSleeper is a job that ends well when it is stopped.
const slurmSleeper = "#!/bin/bash\ntrap 'kill $!; exit 0' TERM\nsleep %d & wait\n"

// TestE2ESlurmFaults lets jobs arrive on a real Slurm while pacers are killed after their requests, two that wait for one lock in
// every other schedule, their commands fail or are late, slurmctld restarts, pacer serve is killed or hangs, a node is lost and
// comes back, and a job is cancelled. No device is granted twice, no job is stopped needlessly, and every other job completes.
// PACER_LIVE_SEED runs some seeds, PACER_SOAK many.
func TestE2ESlurmFaults(t *testing.T) {
	pacer := pacerBinary(t)
	for _, seed := range livetest.Seeds(t, 1, 200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runSlurmFaults(t, pacer, seed) })
	}
}

func runSlurmFaults(t *testing.T, pacer string, seed uint64) {
	r := &slurmFaults{t: t, real: slurmtest.Start(t, 2, 1), rng: rand.New(rand.NewPCG(seed, 6)), dir: commandDir(t), planner: startFaultPlanner(t, pacer)}
	r.wrap()
	policy := faultPolicies[seed%uint64(len(faultPolicies))]
	began := time.Now()
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	pacers := r.planner.startPacers(ctx, &all, "slurm", policy, seed, func(p *faultPacer) {
		p.env = []string{"PATH=" + r.dir + ":" + os.Getenv("PATH")}
		p.args = append(p.args, "--gres", "a100=a100-80gb", "--gres", "v100=v100-32gb", "--lock", filepath.Join(r.dir, "lock"))
		p.starting = func(writes int) {
			writeFile(t, filepath.Join(r.dir, "last"), strconv.Itoa(writes))
			writeFile(t, filepath.Join(r.dir, "writes"), "")
		}
	})
	defer pacers.show(t)
	all.Go(func() { r.watch(ctx) })
	faults := r.rng.Perm(6)
	for i := range 8 {
		r.ids = append(r.ids, r.real.Submit(fmt.Sprintf(slurmSleeper, 1+r.rng.IntN(4)), "-n1", "-N1", fmt.Sprintf("--gres=gpu:%d", 1+i%2),
			fmt.Sprintf("--comment=pacer:model=GPT2-small,batch=8,steps=%d", 1000*(1+r.rng.IntN(100)))))
		time.Sleep(time.Duration(r.rng.IntN(2000)) * time.Millisecond)
		if i >= 2 && i-2 < len(faults) {
			r.fault(faults[i-2])
		}
	}
	r.up()
	r.planner.up()
	for end := time.Now().Add(spectest.Patience(240 * time.Second)); r.left() != nil; time.Sleep(time.Second) {
		if time.Now().After(end) {
			t.Fatalf("policy %s: %v", policy, r.left())
		}
	}
	stop()
	all.Wait()
	kills, ends := pacers.ends()
	injected, err := os.ReadFile(filepath.Join(r.dir, "faults"))
	text := string(injected)
	t.Logf("policy %s, %d pacers: %d jobs, %d stops, %s, in %v; refused: %d late: %d no answer to a write: %d",
		policy, len(pacers), len(r.ids), r.stops(), ends, time.Since(began).Round(time.Millisecond),
		strings.Count(text, "refused"), strings.Count(text, "late"), strings.Count(text, "silent"))
	if kills == 0 || !strings.Contains(text, "refused") || !strings.Contains(text, "late") {
		t.Errorf("pacer was never killed, or no command failed or was late: %v", err)
	}
}
