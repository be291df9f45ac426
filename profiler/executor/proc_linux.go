package executor

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// descendants returns the living descendants of pid, ascending. It may miss one that starts meanwhile.
func descendants(pid int) []int {
	below := listedChildren
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)); err != nil {
		below = scannedChildren()
	}
	var out []int
	seen := map[int]bool{pid: true} // a pid that was reused in the meantime cannot form a cycle
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		for _, child := range below(queue[0]) {
			if !seen[child] {
				seen[child] = true
				queue = append(queue, child)
				if p, ok := procfs.Read("/", child); ok && p.Living() {
					out = append(out, child)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// listedChildren returns the children of a process as the kernel lists them, which it does if it was built with
// CONFIG_PROC_CHILDREN. To read all processes takes so long on a busy machine that one which starts another every few
// milliseconds and ends is gone before it is found.
func listedChildren(pid int) (out []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // of each thread
	for _, list := range lists {
		text, _ := os.ReadFile(list) // the process may have ended
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				out = append(out, child)
			}
		}
	}
	return out
}

// scannedChildren returns the children of processes by reading all of them.
func scannedChildren() func(pid int) []int {
	children := map[int][]int{}
	for _, p := range processes() {
		children[p.Parent] = append(children[p.Parent], p.PID)
	}
	return func(pid int) []int { return children[pid] }
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
