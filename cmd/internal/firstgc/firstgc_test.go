package firstgc

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestUsualAfterFirst: the first collection sets the growth of the heap back to Go's 100 %. This needs a process that has
// not collected yet, without GOGC.
func TestUsualAfterFirst(t *testing.T) {
	const child = "PACER_TEST_FIRSTGC"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestUsualAfterFirst$", "-test.v")
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOGC=") }), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if now := debug.SetGCPercent(growth); now != growth {
		t.Fatalf("growth of %d %% before the first collection, want %d", now, growth)
	}
	runtime.GC()
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		now := debug.SetGCPercent(growth)
		if now == 100 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("growth of %d %% after the first collection, want 100", now)
		}
	}
}

// TestKeepsAnother: a growth that the program has set in the meantime stays.
func TestKeepsAnother(t *testing.T) {
	was := debug.SetGCPercent(800)
	defer debug.SetGCPercent(was)
	restore(100)
	if now := debug.SetGCPercent(800); now != 800 {
		t.Errorf("growth of %d %%, want the 800 of the program", now)
	}
}
