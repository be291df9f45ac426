package executor

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/profiler/internal/procfs"
)

// processes lists what runs on this machine, dead but unwaited ones excluded.
func processes() []procfs.Process {
	var out []procfs.Process
	for _, pid := range procfs.IDs("/") {
		if p, ok := procfs.Read("/", pid); ok && p.Living() {
			out = append(out, p)
		}
	}
	return out
}

// descendants returns the living processes below pid, ascending.
func descendants(pid int) []int {
	children := map[int][]int{}
	for _, p := range processes() {
		children[p.Parent] = append(children[p.Parent], p.PID)
	}
	var out []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		below := children[queue[0]]
		delete(children, queue[0]) // a pid used anew while we read closes no circle
		out = append(out, below...)
		queue = append(queue, below...)
	}
	slices.Sort(out)
	return out
}

// marked returns the living processes that have mark, a "KEY=value", in the
// environment they were started with, or belong to the process group.
func marked(mark string, group int) []int {
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

// stuck says which processes SIGKILL did not end.
func stuck(pids []int) string {
	var names []string
	for _, pid := range pids {
		if p, ok := procfs.Read("/", pid); ok {
			names = append(names, fmt.Sprintf("%d (%s, state %c)", pid, p.Name, p.State))
		}
	}
	return "processes do not die of SIGKILL: " + strings.Join(names, ", ") + "; the device may need a reset"
}
