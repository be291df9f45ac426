package executor

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A proc is a process as /proc/PID/stat shows it.
type proc struct {
	pid, parent, group int
	state              byte // Z = dead, not waited for; D = in the kernel, not to be interrupted
	name               string
}

// readProc reads one process, false when it is gone.
func readProc(pid int) (proc, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return proc{}, false
	}
	// The name is in parentheses and may hold anything, parentheses too.
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return proc{}, false
	}
	f := strings.Fields(string(text[end+1:]))
	if len(f) < 3 {
		return proc{}, false
	}
	p := proc{pid: pid, state: f[0][0], name: string(text[open+1 : end])}
	p.parent, _ = strconv.Atoi(f[1])
	p.group, _ = strconv.Atoi(f[2])
	return p, true
}

// processes lists what runs on this machine, dead but unwaited ones excluded.
func processes() []proc {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	out := make([]proc, 0, len(dirs))
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if p, ok := readProc(pid); ok && p.state != 'Z' && p.state != 'X' {
			out = append(out, p)
		}
	}
	return out
}

// descendants returns the living processes below pid, ascending.
func descendants(pid int) []int {
	children := map[int][]int{}
	for _, p := range processes() {
		children[p.parent] = append(children[p.parent], p.pid)
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
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
		has := slices.ContainsFunc(bytes.Split(env, []byte{0}), func(kv []byte) bool { return bytes.Equal(kv, want) })
		if has || group > 1 && p.group == group {
			out = append(out, p.pid)
		}
	}
	return out
}

// stuck says which processes SIGKILL did not end.
func stuck(pids []int) string {
	var names []string
	for _, pid := range pids {
		if p, ok := readProc(pid); ok {
			names = append(names, fmt.Sprintf("%d (%s, state %c)", pid, p.name, p.state))
		}
	}
	return "processes do not die of SIGKILL: " + strings.Join(names, ", ") + "; the device may need a reset"
}
