package device

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/profiler/internal/procfs"
)

// fakeProc is the processes of an invented machine.
type fakeProc []procfs.Process

// write writes the processes below a new root and returns it.
func (f fakeProc) write(t testing.TB) (root string) {
	t.Helper()
	root = t.TempDir()
	for _, p := range f {
		writeProcess(t, root, p)
	}
	return root
}

func writeProcess(t testing.TB, root string, p procfs.Process) {
	t.Helper()
	text := fmt.Sprintf("%d (%s) S %d %d 0 0 -1 0 0 0 0 0 %.0f %d 9999 9999 20 0 1 0 0%s\n", p.PID, p.Name, p.Parent, p.Group, p.CPU*procfs.UserHz, 0, strings.Repeat(" 0", 30))
	writeFile(t, filepath.Join(root, "proc", strconv.Itoa(p.PID), "stat"), text)
}

// writeFile writes one file.
func writeFile(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	spectest.WriteFile(t, file, []byte(text), 0o644)
}

// writeSelf writes the control groups of this process.
func writeSelf(t testing.TB, root, groups string) {
	t.Helper()
	writeFile(t, filepath.Join(root, "proc/1/cgroup"), groups)
	if err := os.Symlink("1", filepath.Join(root, "proc/self")); err != nil {
		t.Fatal(err)
	}
}

func TestMeasuredProcesses(t *testing.T) {
	self := os.Getpid()
	root := fakeProc{
		{PID: self, Parent: 1, Group: self, Name: "pacer"},
		{PID: 1<<22 + 1, Parent: self, Group: 1<<22 + 1, Name: "supervisor"},
		{PID: 1<<22 + 2, Parent: 1<<22 + 1, Group: 1<<22 + 2, Name: "torchrun"},
		{PID: 1<<22 + 3, Parent: 1<<22 + 2, Group: 1<<22 + 3, Name: "rank with a session (of its own)"},
		{PID: 500, Parent: 1, Group: 500, Name: "leader elsewhere"},
		{PID: 501, Parent: 500, Group: 501, Name: "its child"},
		{PID: 502, Parent: 1, Group: 500, Name: "orphan of the group"},
		{PID: 600, Parent: 1, Group: 600, Name: "stranger"},
		{PID: 601, Parent: 600, Group: 600, Name: ") 1 500 ("},
		{PID: 700, Parent: 701, Group: 700, Name: "loop"}, {PID: 701, Parent: 700, Group: 700, Name: "loop"},
	}.write(t)
	writeFile(t, filepath.Join(root, "proc/800/stat"), "800 (torn")
	k := newMeasuredProcesses(root, func() int { return 500 })
	for pid, want := range map[int][2]bool{
		self: {false, true}, 1<<22 + 1: {true, true}, 1<<22 + 2: {true, true}, 1<<22 + 3: {true, true}, 500: {true, true}, 501: {true, true},
		502: {true, true}, 600: {false, true}, 601: {false, true}, 700: {false, true}, 800: {false, false}, 999: {false, false},
	} {
		if ours, found := k.has(pid, someMoment); ours != want[0] || found != want[1] {
			t.Errorf("process %d: ours %v, found %v, want %v", pid, ours, found, want)
		}
	}
}

// TestMeasuredProcessesForget: after pidLifetime, or with another group, a process id is looked up again.
func TestMeasuredProcessesForget(t *testing.T) {
	root := fakeProc{{PID: 600, Parent: 1, Group: 600, Name: "a"}}.write(t)
	group := 0
	k := newMeasuredProcesses(root, func() int { return group })
	if ours, _ := k.has(600, someMoment); ours {
		t.Error("nothing is measured yet")
	}
	group = 600
	if ours, _ := k.has(600, someMoment); !ours {
		t.Error("the group that is measured now is not known")
	}
	writeProcess(t, root, procfs.Process{PID: 600, Parent: 1, Group: 601, Name: "b"})
	if ours, _ := k.has(600, someMoment.Add(2*pidLifetime)); ours {
		t.Error("a process id is remembered endlessly")
	}
}

var someMoment = time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)

// TestProcessName: the kernel truncates names at 15 bytes, possibly inside a letter.
func TestProcessName(t *testing.T) {
	root := fakeProc{{PID: 900, Parent: 1, Group: 900, Name: "\xe8\xa8\x93\xe7"}}.write(t)
	if p, ok := procfs.Read(root, 900); !ok || p.Name != "\u8a13\uFFFD" {
		t.Errorf("%q, %t", p.Name, ok)
	}
}
