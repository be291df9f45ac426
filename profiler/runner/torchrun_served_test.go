//go:build linux

package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/executor"
)

// aloneAt is tiny as a rank of a stage of a plan with 16 devices.
func aloneAt(stage int) spec.Config {
	c := tiny(4)
	c.Plan.TP, c.Plan.PP, c.Plan.AccumSteps, c.Shape = 2, 2, 4, spec.NewShape(8, 8)
	c.AloneStage = stage
	return c
}

// TestTorchrunAlone measures ranks of a plan for 16 devices on one device, for real and all in one process.
func TestTorchrunAlone(t *testing.T) {
	r := withTorch(t, TorchrunOptions{Machine: profiler.Machine{Devices: []int{0}, CPU: true}})
	defer r.Close()
	pgid := int64(0)
	for i, stage := range []int{1, 2, 1} {
		c := aloneAt(stage)
		m, err := r.Run(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		if m.Outcome != spec.OK {
			t.Fatalf("stage %d: %s %s\n%s", stage, m.Outcome, m.Reason, m.Env[profiler.EnvLog])
		}
		check(t, m, c)
		if m.PeakBytes < 1e5 || m.Env["used_alone"] == "" || m.Env[profiler.EnvFLOPS] != "" || m.Env["loss_last"] != "" {
			t.Errorf("stage %d: peak %g, %v; want no loss and no rate", stage, m.PeakBytes, m.Env)
		}
		if is := r.server.pgid.Load(); i > 0 && is != pgid {
			t.Errorf("point %d ran in process %d, the one before in %d", i+1, is, pgid)
		} else {
			pgid = is
		}
	}
	dir := r.server.files.Dir
	m, err := r.Run(context.Background(), tiny(1)) // of another kind
	if err != nil || m.Outcome != spec.OK || r.server != nil {
		t.Errorf("an ordinary point: %s %s, %v, the process %v", m.Outcome, m.Reason, err, r.server)
	}
	noneLeft(t, dir)
}

// TestTorchrunServed: points of one accelerator are measured in one process. Here it is a CPU.
func TestTorchrunServed(t *testing.T) {
	r := withTorch(t, TorchrunOptions{Machine: profiler.Machine{Devices: []int{0, 1}, CPU: true}})
	r.serves = true
	defer r.Close()
	pgid := int64(0)
	for i, mb := range []int{2, 4} {
		c := tiny(1)
		c.Plan.MicroBatch = mb
		m, err := r.Run(context.Background(), c)
		if err != nil || m.Outcome != spec.OK || m.Env["loss_last"] == "" || m.Env["used_alone"] != "" {
			t.Fatalf("mb=%d: %s %s, %v\n%s", mb, m.Outcome, m.Reason, err, m.Env[profiler.EnvLog])
		}
		check(t, m, c)
		if is := r.server.pgid.Load(); i > 0 && is != pgid {
			t.Errorf("mb=%d ran in process %d, the point before in %d", mb, is, pgid)
		} else {
			pgid = is
		}
	}
	if m, err := r.Run(context.Background(), tiny(2)); err != nil || m.Outcome != spec.OK || r.server != nil {
		t.Errorf("two devices: %s %s, %v, the process %v", m.Outcome, m.Reason, err, r.server)
	}
}

// serving are lines of shell that answer points of --serve by the lines in answer, with the number in $n.
func serving(answer string) string {
	return `dir=${all##*--serve }; n=1
while :; do
  while [ ! -e "$dir/$n.json" ]; do [ -e "$dir/end" ] && exit 0; sleep 0.01; done
  out=$dir/$n.out
  ` + answer + `
  echo "pacer_worker: measured point $n"; n=$((n+1))
done`
}

// TestTorchrunAloneEvil: any behaviour of the process becomes an outcome, the next point is measured, and nothing is left.
func TestTorchrunAloneEvil(t *testing.T) {
	for _, c := range []struct {
		name, first string // what it does with the first point
		outcome     spec.Outcome
		reason, log string
		again       bool // the process is a new one
	}{
		{"good", goodResult(1), spec.OK, "", "", false},
		{"out of memory", `echo some output; echo '{"version":1,"outcome":"oom","reason":"cannot allocate 9 GiB"}' >"$out.rank0"`,
			spec.OOM, "cannot allocate", "some output", false},
		{"fails", `echo '{"version":1,"outcome":"failed","reason":"a device is gone"}' >"$out.rank0"`, spec.Failed, "a device is gone", "", true},
		{"writes nothing", `echo hello`, spec.Failed, "no result", "hello", true},
		{"crashes", `echo Traceback; exit 3`, spec.Failed, "no result: exit status 3", "Traceback", true},
		{"is killed", `kill -9 $$`, spec.Failed, "another process sent it", "", true},
		{"hangs", hang, spec.Timeout, "did not end within 3s", "", true},
		{"other world", goodResult(2), spec.Failed, "ran on 2 devices", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			python, word := fakePython(t, serving(fmt.Sprintf("if [ ! -e WORD/tried ]; then : >WORD/tried\n%s\nelse\n%s\nfi", c.first, goodResult(1))))
			timeout := 10 * time.Minute
			if c.outcome == spec.Timeout {
				timeout = 3 * time.Second
			}
			r := newTorchrun(t, TorchrunOptions{Python: python, Point: profiler.PointOptions{Timeout: timeout},
				Executor: executor.Local{Grace: 300 * time.Millisecond}})
			m, err := r.Run(context.Background(), aloneAt(1))
			if err != nil || m.Outcome != c.outcome || !strings.Contains(m.Reason, c.reason) || !strings.Contains(m.Env[profiler.EnvLog], c.log) {
				t.Errorf("%s %q, log %q, %v; want %s %q, %q", m.Outcome, m.Reason, m.Env[profiler.EnvLog], err, c.outcome, c.reason, c.log)
			}
			check(t, m, aloneAt(1))
			if (r.server == nil) != c.again {
				t.Errorf("the process is kept: %t, want %t", r.server != nil, !c.again)
			}
			if m, err = r.Run(context.Background(), aloneAt(2)); err != nil || m.Outcome != spec.OK || len(m.StepSec) != 6 {
				t.Errorf("the next point: %s %s, %v", m.Outcome, m.Reason, err)
			}
			if err := r.Close(); err != nil || r.server != nil {
				t.Errorf("closed: %v", err)
			}
			noneLeft(t, word)
		})
	}
}

// TestTorchrunAloneContext: a cancelled point is no outcome, and ends the process.
func TestTorchrunAloneContext(t *testing.T) {
	python, word := fakePython(t, serving(`: >WORD/begun; `+hang))
	ctx, cancel := context.WithCancel(context.Background())
	r := newTorchrun(t, TorchrunOptions{Python: python, Watch: cancelAt{cancel}, Executor: executor.Local{Grace: 300 * time.Millisecond}})
	if m, err := r.Run(ctx, aloneAt(1)); !errors.Is(err, context.Canceled) || m.Outcome != "" || r.server != nil {
		t.Errorf("%+v, %v", m, err)
	}
	noneLeft(t, word)
}

// cancelAt is a Watcher that cancels when a point begins.
type cancelAt struct{ cancel func() }

func (c cancelAt) Watch([]int, func() int) func(_, _ time.Time) Watched {
	c.cancel()
	return func(_, _ time.Time) Watched { return Watched{} }
}

// TestTorchrunAloneDevices: a rank alone needs one device, whatever its plan.
func TestTorchrunAloneDevices(t *testing.T) {
	python, _ := fakePython(t, serving(goodResult(1)))
	r := newTorchrun(t, TorchrunOptions{Python: python, Machine: profiler.Machine{Devices: []int{3}}, Point: profiler.PointOptions{Timeout: 30 * time.Second}})
	defer r.Close()
	m, err := r.Run(context.Background(), aloneAt(2))
	if err != nil || m.Outcome != spec.OK {
		t.Errorf("%s %s, %v", m.Outcome, m.Reason, err)
	}
	server := r.server
	if m, err = r.Run(context.Background(), tiny(1)); err != nil || m.Outcome != spec.OK || r.server != server || m.Env[spec.EnvMemKind] != "allocated" {
		t.Errorf("a point of one device: %s %s, %v, memory %q; in the same process: %t", m.Outcome, m.Reason, err, m.Env[spec.EnvMemKind], r.server == server)
	}
	whole := aloneAt(0)
	if m, err := r.Run(context.Background(), whole); err != nil || !strings.Contains(m.Reason, "needs 16 devices, the machine has 1") {
		t.Errorf("the whole plan: %s %s, %v", m.Outcome, m.Reason, err)
	}
}
