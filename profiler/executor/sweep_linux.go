package executor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pacer-ml/pacer/profiler/internal/procfs"
)

// Sweep ends the processes of runs on this machine that lost their supervisors, and waits for supervisors that are ending
// their processes because their parent was killed. Processes of other running programs of this kind are left alone, and so
// is the run that this process itself belongs to. It returns a description of each process that it killed. Processes that
// survive for 10 s are an error.
func Sweep(ctx context.Context) (killed []string, err error) {
	seen := map[int]bool{}
	for deadline := time.Now().Add(sweepPatience); ; time.Sleep(20 * time.Millisecond) {
		orphans, ending := leftover()
		if len(orphans)+len(ending) == 0 {
			return killed, nil
		}
		if err := ctx.Err(); err != nil {
			return killed, err
		}
		if time.Now().After(deadline) {
			return killed, fmt.Errorf("executor: of an earlier run, %s", unkillable(append(orphans, ending...)))
		}
		for _, pid := range orphans {
			if p, ok := procfs.Read("/", pid); ok && !seen[pid] {
				killed = append(killed, fmt.Sprintf("%d (%s)", pid, p.Name))
			}
			seen[pid] = true
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// sweepPatience is longer than Local.Grace, which a supervisor gives its processes.
const sweepPatience = 10 * time.Second

// leftover returns the processes of runs without a supervisor, and the guards that lost their parent.
func leftover() (orphans, ending []int) {
	all := map[int]procfs.Process{}
	for _, p := range processes() {
		all[p.PID] = p
	}
	own := os.Getenv(markVar)
	for pid, p := range all {
		env := environOf(pid)
		role, parent, _ := strings.Cut(env[superviseVar], " ")
		switch mark := env[markVar]; {
		case isSupervisor(pid):
			if role == guardRole && parent != strconv.Itoa(p.Parent) {
				ending = append(ending, pid)
			}
		case mark != "" && mark != own && !supervised(all, pid):
			orphans = append(orphans, pid)
		}
	}
	return orphans, ending
}

// supervised reports whether an ancestor of the process is a guard or a supervisor.
func supervised(all map[int]procfs.Process, pid int) bool {
	for n := 0; n < len(all) && pid > 1; n++ { // a bound, since ids may be reused in the meantime
		if isSupervisor(pid) {
			return true
		}
		pid = all[pid].Parent
	}
	return false
}

func isSupervisor(pid int) bool {
	args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return bytes.HasPrefix(args, []byte(superviseName+"\x00"))
}

// environOf returns the variables of package executor that a process was started with.
func environOf(pid int) map[string]string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	out := map[string]string{}
	for kv := range strings.SplitSeq(string(text), "\x00") {
		if k, v, _ := strings.Cut(kv, "="); k == markVar || k == superviseVar {
			out[k] = v
		}
	}
	return out
}
