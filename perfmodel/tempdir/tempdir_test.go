//go:build linux

package tempdir

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// asOwner is an environment variable. If it names a directory, this test program makes a Dir in it, prints its
// path, and waits to be killed.
const asOwner = "PACER_TEST_TEMPDIR_OWNER"

func TestMain(m *testing.M) {
	if parent := os.Getenv(asOwner); parent != "" {
		d, err := New(parent, "mine-")
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(d.Path(""))
		time.Sleep(time.Minute)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// owner starts a process that owns a Dir in parent.
func owner(t *testing.T, parent string) (path string, process *exec.Cmd) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asOwner+"="+parent)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if path = strings.TrimSpace(line); err != nil || !there(path) {
		t.Fatalf("%q, %v", line, err)
	}
	return path, cmd
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func newDir(t *testing.T, parent, prefix string) *Dir {
	t.Helper()
	d, err := New(parent, prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Remove)
	return d
}

// TestKilledOwner: the next New removes the directories of killed processes, with their content. It keeps
// directories of running processes, including this one.
func TestKilledOwner(t *testing.T) {
	parent := t.TempDir()
	dead, killed := owner(t, parent)
	alive, _ := owner(t, parent)
	own := newDir(t, parent, "mine-")
	if err := os.WriteFile(filepath.Join(dead, "log"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	newDir(t, parent, "mine-")
	if !there(dead) {
		t.Fatal("removed before its process ended")
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	newDir(t, parent, "other-")
	if !there(dead) {
		t.Error("removed for another prefix")
	}
	newDir(t, parent, "mine-")
	if there(dead) || !there(alive) || !there(own.Path("")) {
		t.Errorf("of the dead there: %v, of the living: %v, own: %v", there(dead), there(alive), there(own.Path("")))
	}
}

// TestOwnerIsNotInherited: a child process does not keep its parent's directory.
func TestOwnerIsNotInherited(t *testing.T) {
	parent := t.TempDir()
	d := newDir(t, parent, "mine-")
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = child.Process.Kill(), child.Wait() }()
	if err := d.owner.Close(); err != nil { // as if this process were killed
		t.Fatal(err)
	}
	if d.owner = nil; !abandoned(d.path) {
		t.Error("the child keeps it")
	}
}

// TestOthersAreLeftAlone: a directory of the same name that New did not make may belong to another program.
func TestOthersAreLeftAlone(t *testing.T) {
	parent, elsewhere := t.TempDir(), t.TempDir()
	target := filepath.Join(elsewhere, "file")
	write := func(path string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(target)
	write(filepath.Join(elsewhere, ownerFile))
	write(filepath.Join(parent, "mine-1", "result.json"))
	write(filepath.Join(parent, "mine-2"))
	write(filepath.Join(parent, "mine-3", "file"))
	write(filepath.Join(parent, "yours-1", ownerFile))
	for link, to := range map[string]string{"mine-4": elsewhere, "mine-3/" + ownerFile: target} {
		if err := os.Symlink(to, filepath.Join(parent, link)); err != nil {
			t.Fatal(err)
		}
	}
	newDir(t, parent, "mine-")
	for _, path := range []string{"mine-1/result.json", "mine-2", "mine-3/file", "mine-4", "yours-1/owner"} {
		if !there(filepath.Join(parent, path)) {
			t.Errorf("%s was removed", path)
		}
	}
	if !there(target) {
		t.Error("what a link leads to was removed")
	}
}

func TestRemove(t *testing.T) {
	parent := t.TempDir()
	d := newDir(t, parent, "mine-")
	if err := os.WriteFile(d.Path("x"), nil, 0o600); err != nil || filepath.Dir(d.Path("x")) != d.Path("") {
		t.Fatal(err, d.Path("x"))
	}
	if d.Remove(); there(d.Path("")) {
		t.Error("still there")
	}
	if _, err := New(filepath.Join(parent, "none"), "mine-"); err == nil {
		t.Error("made in a directory that does not exist")
	}
}
