//go:build unix

package plan

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestBackgroundOutput: processes that a command leaves in the background do not delay the end, and their output
// still arrives.
func TestBackgroundOutput(t *testing.T) {
	dir := t.TempDir()
	log, begin := filepath.Join(dir, "log"), filepath.Join(dir, "begin")
	file, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout = file
	defer func() { os.Stdout, os.Stderr = stdout, stderr }()
	cmd := exec.Command("sh", "-c", `(i=0; while [ ! -e "$0" ] && [ $i -lt 600 ]; do sleep 0.05; i=$((i+1)); done; echo late; echo late >&2) &
echo "completed step: 9, seconds: 5.667, loss: 1"`, begin)
	for _, both := range []bool{false, true} {
		if both {
			os.Stderr = file
		}
		cmd := exec.Command(cmd.Path, cmd.Args[1:]...)
		out, err := readOutput(cmd, "")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		if l := out.wait(); l == nil || len(l.Lines) != 1 {
			t.Errorf("read %+v", l)
		}
		if took := time.Since(began); took > spectest.Patience(15*time.Second) {
			t.Errorf("it took %s", took)
		}
		spectest.WriteFile(t, begin, nil, 0o600)
		for deadline := time.Now().Add(spectest.Patience(10 * time.Second)); ; time.Sleep(20 * time.Millisecond) {
			if text := string(spectest.ReadFile(t, log)); strings.Count(text, "late") == map[bool]int{false: 1, true: 3}[both] {
				break
			} else if time.Now().After(deadline) {
				t.Fatalf("output %q", text)
			}
		}
		_ = os.Remove(begin)
	}
}
