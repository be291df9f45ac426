package device

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// fakeProc is the processes of a machine that is not there.
type fakeProc []process

// write writes them below a new root and returns it.
func (f fakeProc) write(t testing.TB) (root string) {
	t.Helper()
	root = t.TempDir()
	for _, p := range f {
		p.write(t, root)
	}
	return root
}

func (p process) write(t testing.TB, root string) {
	t.Helper()
	text := fmt.Sprintf("%d (%s) S %d %d 0 0 -1 0 0 0 0 0 %.0f %d 9999 9999 20 0 1 0 0\n", p.pid, p.name, p.parent, p.group, p.cpu*userHz, 0)
	writeFile(t, filepath.Join(root, "proc", strconv.Itoa(p.pid), "stat"), text)
}

// writeFile writes one file.
func writeFile(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestKin(t *testing.T) {
	self := os.Getpid()
	root := fakeProc{
		{pid: self, parent: 1, group: self, name: "pacer"},
		{pid: 1<<22 + 1, parent: self, group: 1<<22 + 1, name: "supervisor"},
		{pid: 1<<22 + 2, parent: 1<<22 + 1, group: 1<<22 + 2, name: "torchrun"},
		{pid: 1<<22 + 3, parent: 1<<22 + 2, group: 1<<22 + 3, name: "rank with a session (of its own)"},
		{pid: 500, parent: 1, group: 500, name: "leader elsewhere"},
		{pid: 501, parent: 500, group: 501, name: "its child"},
		{pid: 502, parent: 1, group: 500, name: "orphan of the group"},
		{pid: 600, parent: 1, group: 600, name: "stranger"},
		{pid: 601, parent: 600, group: 600, name: ") 1 500 ("},
		{pid: 700, parent: 701, group: 700, name: "loop"}, {pid: 701, parent: 700, group: 700, name: "loop"},
	}.write(t)
	writeFile(t, filepath.Join(root, "proc/800/stat"), "800 (torn")
	k := newKin(root, func() int { return 500 })
	for pid, want := range map[int][2]bool{
		self: {false, true}, 1<<22 + 1: {true, true}, 1<<22 + 2: {true, true}, 1<<22 + 3: {true, true}, 500: {true, true}, 501: {true, true},
		502: {true, true}, 600: {false, true}, 601: {false, true}, 700: {false, true}, 800: {false, false}, 999: {false, false},
	} {
		if ours, found := k.has(pid, someMoment); ours != want[0] || found != want[1] {
			t.Errorf("process %d: ours %v, found %v, want %v", pid, ours, found, want)
		}
	}
}

// A process id means another process after a while, and with another group.
func TestKinForgets(t *testing.T) {
	root := fakeProc{{pid: 600, parent: 1, group: 600, name: "a"}}.write(t)
	group := 0
	k := newKin(root, func() int { return group })
	if ours, _ := k.has(600, someMoment); ours {
		t.Error("nothing is measured yet")
	}
	group = 600
	if ours, _ := k.has(600, someMoment); !ours {
		t.Error("the group that is measured now is not known")
	}
	process{pid: 600, parent: 1, group: 601, name: "b"}.write(t, root)
	if ours, _ := k.has(600, someMoment.Add(2*kinMemory)); ours {
		t.Error("a process id is remembered for ever")
	}
}

var someMoment = time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)

// The kernel cuts names at 15 bytes, through the middle of a letter too.
func TestProcessName(t *testing.T) {
	root := fakeProc{{pid: 900, parent: 1, group: 900, name: "\xe8\xa8\x93\xe7"}}.write(t)
	if p, ok := readProcess(root, 900); !ok || p.name != "\u8a13\uFFFD" {
		t.Errorf("%q, %t", p.name, ok)
	}
}
