package procfs

import (
	"path/filepath"
	"strings"

	"github.com/prometheus/procfs"
)

// UserHz is the unit of CPU times in /proc, 1/s. It is 100 for programs on every
// architecture Go runs Linux on (proc(5), sysconf(_SC_CLK_TCK)).
const UserHz = 100

// A Process is the content of /proc/PID/stat.
type Process struct {
	PID, Parent, Group int
	State              byte    // Z = zombie, D = uninterruptible sleep
	Name               string  // valid UTF-8; the kernel truncates it at 15 bytes
	CPU                float64 // seconds of CPU time so far, without child processes
}

// Living reports whether p is not a zombie.
func (p Process) Living() bool { return p.State != 'Z' && p.State != 'X' }

// FS returns the /proc below root, "/" for this machine.
func FS(root string) (procfs.FS, error) {
	return procfs.NewFS(filepath.Join(root, procfs.DefaultMountPoint))
}

// Read reads one process below root. It returns false if the process has ended or there is no /proc.
func Read(root string, pid int) (Process, bool) {
	fs, err := FS(root)
	if err != nil {
		return Process{}, false
	}
	proc, err := fs.Proc(pid)
	if err != nil {
		return Process{}, false
	}
	s, err := proc.Stat()
	if err != nil || s.State == "" {
		return Process{}, false
	}
	return Process{PID: pid, Parent: s.PPID, Group: s.PGRP, State: s.State[0],
		Name: strings.ToValidUTF8(s.Comm, "\uFFFD"), CPU: s.CPUTime()}, true
}

// IDs returns the ids of the processes below root, in no particular order. The slice belongs to the caller.
func IDs(root string) []int {
	fs, err := FS(root)
	if err != nil {
		return nil
	}
	all, _ := fs.AllProcs()
	out := make([]int, len(all))
	for i, p := range all {
		out[i] = p.PID
	}
	return out
}
