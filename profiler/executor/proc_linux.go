package executor

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/profiler/internal/procfs"
)

// processes lists the processes of this machine, without zombies.
func processes() []procfs.Process {
	var out []procfs.Process
	for _, pid := range procfs.IDs("/") {
		if p, ok := procfs.Read("/", pid); ok && p.Living() {
			out = append(out, p)
		}
	}
	return out
}

// descendants returns the living descendants of pid, ascending.
func descendants(pid int) []int {
	children := map[int][]int{}
	for _, p := range processes() {
		children[p.Parent] = append(children[p.Parent], p.PID)
	}
	var out []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		below := children[queue[0]]
		delete(children, queue[0]) // a pid that was reused in the meantime cannot form a cycle
		out = append(out, below...)
		queue = append(queue, below...)
	}
	slices.Sort(out)
	return out
}

// runProcesses returns the running processes that were started with mark, a "KEY=value", in their environment,
// or that belong to the process group.
func runProcesses(mark string, group int) []int {
	want := []byte(mark)
	var out []int
	for _, p := range processes() {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.PID))
		has := slices.ContainsFunc(bytes.Split(env, []byte{0}), func(kv []byte) bool { return bytes.Equal(kv, want) })
		if has || group > 1 && p.Group == group {
			out = append(out, p.PID)
		}
	}
	return out
}

// unkillable describes the processes that survived SIGKILL.
func unkillable(pids []int) string {
	var names []string
	for _, pid := range pids {
		if p, ok := procfs.Read("/", pid); ok {
			names = append(names, fmt.Sprintf("%d (%s, state %c)", pid, p.Name, p.State))
		}
	}
	return "processes survive SIGKILL: " + strings.Join(names, ", ") + "; the device may need a reset"
}
