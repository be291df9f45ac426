package procfs

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// UserHz is the unit of CPU times in /proc, 1/s. It is 100 for programs on every
// architecture Go runs Linux on (proc(5), sysconf(_SC_CLK_TCK)).
const UserHz = 100

// A Process is one as /proc/PID/stat shows it.
type Process struct {
	PID, Parent, Group int
	State              byte    // Z = dead, not waited for; D = in the kernel, not to be interrupted
	Name               string  // valid UTF-8; the kernel cuts it at 15 bytes
	CPU                float64 // seconds of CPU time so far, children excluded
}

// Living reports whether p is more than an entry nobody has waited for.
func (p Process) Living() bool { return p.State != 'Z' && p.State != 'X' }

// Read reads one process below root, "/" for this machine; false when it is
// gone or there is no /proc.
func Read(root string, pid int) (Process, bool) {
	text, err := os.ReadFile(filepath.Join(root, "proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return Process{}, false
	}
	// The name is in parentheses and may hold anything, parentheses too.
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return Process{}, false
	}
	f := strings.Fields(string(text[end+1:]))
	if len(f) < 13 {
		return Process{}, false
	}
	p := Process{PID: pid, State: f[0][0], Name: strings.ToValidUTF8(string(text[open+1:end]), "\uFFFD")}
	p.Parent, _ = strconv.Atoi(f[1])
	p.Group, _ = strconv.Atoi(f[2])
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	p.CPU = (user + system) / UserHz
	return p, true
}

// IDs lists the processes below root, in no order.
func IDs(root string) []int {
	dir, err := os.Open(filepath.Join(root, "proc"))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var out []int
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		if pid, err := strconv.Atoi(name); err == nil {
			out = append(out, pid)
		}
	}
	return out
}
