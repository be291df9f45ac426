//go:build linux

package executor

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/internal/procfs"
)

// mustRun runs a shell script with word in the arguments of all its processes, and checks that none is running
// afterwards.
func mustRun(t *testing.T, ctx context.Context, script string, cmd profiler.Command) profiler.Exit {
	t.Helper()
	word := "evil-" + rand.Text()
	cmd.Args = []string{"sh", "-c", strings.ReplaceAll(script, "WORD", word), word}
	exit, err := Local{Grace: spectest.Scaled(300 * time.Millisecond)}.Run(ctx, cmd)
	if err != nil {
		t.Fatal(err)
	}
	if left := withWord(word); len(left) > 0 {
		t.Errorf("still alive: %v", left)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return exit
}

// withWord returns the running processes that have word in their arguments.
func withWord(word string) []int {
	var out []int
	for _, p := range processes() {
		args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
		if bytes.Contains(args, []byte(word)) && p.PID != os.Getpid() {
			out = append(out, p.PID)
		}
	}
	return out
}

func TestLocalExit(t *testing.T) {
	t.Setenv("POINT", "6")
	for _, c := range []struct {
		name, script, signal, tail string
		code                       int
	}{
		{"zero", "echo out; echo err >&2", "", "out\nerr\n", 0},
		{"status", "exit 7", "", "", 7},
		{"killed", "kill -9 $$", "killed", "", -1},
		{"segfault", "kill -SEGV $$", "segmentation fault", "", -1},
		{"environment", `tr '\0' '\n' </proc/$$/environ | grep ^POINT=`, "", "POINT=7\n", 0},
		{"no input", "cat; echo end", "", "end\n", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			exit := mustRun(t, context.Background(), c.script, profiler.Command{Env: []string{"POINT=7"}})
			if exit.Code != c.code || exit.Signal != c.signal || exit.Tail != c.tail || exit.TimedOut || exit.Stray != 0 {
				t.Errorf("exit %+v, want code %d, signal %q, tail %q", exit, c.code, c.signal, c.tail)
			}
			if exit.Wall <= 0 {
				t.Errorf("wall time %v", exit.Wall)
			}
		})
	}
}

// TestLocalStrays: processes that outlive the command have ended when Run returns, however they tried to
// escape, and Run does not wait for them.
func TestLocalStrays(t *testing.T) {
	sleep := `sh -c 'trap "" TERM HUP INT; while :; do sleep 0.1; done' WORD`
	for _, c := range []struct {
		name, script string
		stray        int // smallest expected number
	}{
		{"background", sleep + " & exit 0", 1},
		{"session", "setsid " + sleep + " & exit 0", 1},
		{"double fork", "(setsid sh -c \"(" + strings.ReplaceAll(sleep, `"`, `\"`) + " &) ; exit\" WORD &) ; exit 3", 1},
		{"no environment", "(env -i setsid " + sleep + " &) ; exit 0", 1},
		{"holds the pipe, quietly", "(trap '' TERM; sleep 1000 WORD & ) 2>/dev/null; sleep 1000 & exit 0", 1},
		{"stopped", "(sh -c 'kill -STOP $$; sleep 1000' WORD &) ; sleep 0.1", 1},
		{"endless chain", `(sh -c 'setsid sh -c "$0" "$0" WORD & exit' 'sleep 0.02; setsid sh -c "$0" "$0" WORD & exit' WORD &); exit 0`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			exit := mustRun(t, context.Background(), c.script, profiler.Command{})
			if exit.Stray < c.stray {
				t.Errorf("stray %d, want at least %d: %+v", exit.Stray, c.stray, exit)
			}
			if exit.Wall > spectest.Patience(5*time.Second) {
				t.Errorf("took %v", exit.Wall)
			}
		})
	}
}

func TestLocalTimeout(t *testing.T) {
	for name, script := range map[string]string{
		"sleeps":        "sleep 1000",
		"ignores TERM":  `trap "" TERM; while :; do sleep 0.1; done`,
		"daemon":        `(setsid sh -c 'trap "" TERM; while :; do sleep 0.1; done' WORD &); sleep 1000`,
		"stopped":       "kill -STOP $$",
		"floods output": "while :; do echo 0123456789012345678901234567890123456789; done",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exit := mustRun(t, context.Background(), script, profiler.Command{Timeout: 300 * time.Millisecond})
			if !exit.TimedOut || exit.Code != -1 || exit.Signal == "" {
				t.Errorf("exit %+v", exit)
			}
			if exit.Wall > spectest.Patience(10*time.Second) || len(exit.Tail) > tailBytes {
				t.Errorf("took %v, %d bytes of output", exit.Wall, len(exit.Tail))
			}
		})
	}
}

// TestLocalGrace: processes that handle SIGTERM have time to do so.
func TestLocalGrace(t *testing.T) {
	exit := mustRun(t, context.Background(), `trap 'echo bye; exit 5' TERM; while :; do sleep 0.05; done`,
		profiler.Command{Timeout: spectest.Scaled(time.Second)})
	if !exit.TimedOut || exit.Code != 5 || !strings.Contains(exit.Tail, "bye") {
		t.Errorf("exit %+v", exit)
	}
}

func TestLocalContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	pgid := 0
	exit := mustRun(t, ctx, "setsid sleep 1000 & sleep 1000", profiler.Command{Started: func(id int) {
		pgid = id
		if p, ok := procfs.Read("/", id); !ok || p.Group != id {
			t.Errorf("process %d is %+v, want the leader of its group", id, p)
		}
		cancel()
	}})
	if pgid == 0 || exit.TimedOut || exit.Wall > spectest.Patience(5*time.Second) {
		t.Errorf("group %d, exit %+v", pgid, exit)
	}
	if _, err := (Local{}).Run(ctx, profiler.Command{Args: []string{"true"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
}

// TestLocalHurry: after Hurry, processes get no time to end by themselves, but a running command continues
// until something ends it.
func TestLocalHurry(t *testing.T) {
	hurry := make(chan struct{})
	close(hurry)
	l := Local{Grace: time.Minute, Hurry: hurry}
	exit, err := l.Run(context.Background(), profiler.Command{Args: []string{"sh", "-c", "sleep 0.2; exit 3"}})
	if err != nil || exit.Code != 3 {
		t.Errorf("%+v, %v", exit, err)
	}
	hurry = make(chan struct{})
	l.Hurry = hurry
	ctx, cancel := context.WithCancel(context.Background())
	exit, err = l.Run(ctx, profiler.Command{
		Args: []string{"sh", "-c", `trap "" TERM; while :; do sleep 0.05; done`},
		Started: func(int) {
			time.AfterFunc(spectest.Scaled(500*time.Millisecond), cancel)
			time.AfterFunc(spectest.Scaled(time.Second), func() { close(hurry) })
		},
	})
	if err != nil || exit.Signal != "killed" || exit.Wall < spectest.Scaled(time.Second) || exit.Wall > spectest.Patience(10*time.Second) {
		t.Errorf("%+v, %v", exit, err)
	}
}

// TestLocalSupervisorKilled: a command that kills its supervisor does not escape.
func TestLocalSupervisorKilled(t *testing.T) {
	exit := mustRun(t, context.Background(),
		`setsid sh -c 'while :; do sleep 0.1; done' WORD & sleep 0.1; kill -9 $PPID; sleep 1000`, profiler.Command{})
	if exit.Code != -1 || exit.Signal != "killed" || exit.Stray < 2 {
		t.Errorf("exit %+v", exit)
	}
}

// TestLocalParentKilled: all processes end when this program is killed.
func TestLocalParentKilled(t *testing.T) {
	parent, word, _ := startParent(t, Local{}, `setsid sh -c 'trap "" TERM; while :; do sleep 0.1; done' "$0" & echo up >"$1"; while :; do sleep 0.1; done`)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	within(t, spectest.Patience(20*time.Second), "everything to end", func() bool { return len(withWord(word)) == 0 })
}

// startParent starts this test again, as a program that runs a script of sh by l. In the script $0 is word, which all its
// processes have in their arguments, and $1 a file. It returns what the script wrote into the file first.
func startParent(t *testing.T, l Local, script string) (parent *exec.Cmd, word, written string) {
	t.Helper()
	const wordVariable, fileVariable = "EXECUTOR_TEST_WORD", "EXECUTOR_TEST_FILE"
	if word := os.Getenv(wordVariable); word != "" {
		_, _ = l.Run(context.Background(), profiler.Command{Args: []string{"sh", "-c", script, word, os.Getenv(fileVariable)}})
		t.Fatal("came back")
	}
	word = "evil-" + rand.Text()
	file := filepath.Join(t.TempDir(), "up")
	parent = exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	parent.Env = append(os.Environ(), wordVariable+"="+word, fileVariable+"="+file)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	within(t, spectest.Patience(20*time.Second), "start", func() bool {
		b, _ := os.ReadFile(file)
		written = strings.TrimSpace(string(b))
		return written != ""
	})
	return parent, word, written
}

func within(t *testing.T, d time.Duration, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(d); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", d, what)
		}
	}
}

func TestLocalCannotStart(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage")
	spectest.WriteFile(t, garbage, []byte("\x00\x01 no program"), 0o755)
	for name, c := range map[string]struct {
		cmd   profiler.Command
		setup bool
		want  string
	}{
		"missing":        {profiler.Command{Args: []string{"no-such-program-here"}}, true, "no-such-program-here"},
		"missing path":   {profiler.Command{Args: []string{dir + "/python3"}}, true, dir + "/python3"},
		"not executable": {profiler.Command{Args: []string{garbage}}, true, "garbage"},
		"no arguments":   {profiler.Command{}, false, "without a program"},
		"no directory":   {profiler.Command{Args: []string{"true"}, Dir: dir + "/none"}, false, dir + "/none"},
		"timeout":        {profiler.Command{Args: []string{"true"}, Timeout: -1}, false, "-1ns"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Local{}.Run(context.Background(), c.cmd)
			if err == nil || errors.Is(err, profiler.ErrSetup) != c.setup || !strings.Contains(err.Error(), c.want) ||
				!strings.HasPrefix(err.Error(), "executor: ") {
				t.Errorf("error %v, want %q, of the set-up: %v", err, c.want, c.setup)
			}
		})
	}
}

func TestLocalTail(t *testing.T) {
	exit := mustRun(t, context.Background(), `head -c 1000000 /dev/urandom; printf 'the end'`, profiler.Command{})
	if !utf8.ValidString(exit.Tail) || len(exit.Tail) > tailBytes || !strings.HasSuffix(exit.Tail, "the end") {
		t.Errorf("%d bytes, valid %v", len(exit.Tail), utf8.ValidString(exit.Tail))
	}
	for _, c := range []struct{ in, want string }{
		{"", ""}, {"abc", "abc"}, {"abcdef", "cdef"}, {"ééé", "éé"}, {"aééb", "éb"},
		{"a\xff\xfeb", "a?b"}, {"\xffabc", "?abc"}, {"12é", "12é"}, {"\x80\x80\x80\x80\x80", "?"},
	} {
		if got := validEnd([]byte(c.in), 4); got != c.want {
			t.Errorf("validEnd(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestDescendants(t *testing.T) {
	c := exec.Command("sh", "-c", "sleep 1000 & sleep 1000 & wait")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Wait() }()
	var below []int
	within(t, 5*time.Second, "two children", func() bool { below = descendants(c.Process.Pid); return len(below) == 2 })
	for _, pid := range append(below, c.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	// A process name with parentheses and spaces is parsed correctly.
	odd := filepath.Join(t.TempDir(), "a) R 1 (b")
	if err := os.Link("/bin/sleep", odd); err != nil {
		if text, err := os.ReadFile("/bin/sleep"); err != nil || os.WriteFile(odd, text, 0o755) != nil {
			t.Fatal("no copy of sleep")
		}
	}
	s := exec.Command(odd, "1000")
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	p, ok := procfs.Read("/", s.Process.Pid)
	_ = s.Process.Kill()
	_ = s.Wait()
	if !ok || p.Parent != os.Getpid() || !strings.Contains(p.Name, ") R 1 (") {
		t.Errorf("process %s: %+v, want a child of %d", strconv.Itoa(s.Process.Pid), p, os.Getpid())
	}
}
