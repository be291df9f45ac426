package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestE2EReadme runs the commands of the README's first answers, one after the
// other, as somebody would who has only just built the program.
func TestE2EReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## A first answer\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var lines []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
		lines = append(lines, strings.Split(strings.TrimSpace(block[1]), "\n")...)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(selfAs(t, "pacer"), filepath.Join(dir, "bin", "pacer")); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, line := range lines {
		if strings.HasPrefix(line, "make ") { // done: it is this program
			continue
		}
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+filepath.Join(dir, "data"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s\n%v\n%s", line, err, out)
		}
		ran++
	}
	if ran < 10 {
		t.Errorf("only %d commands in the README: %q", ran, lines)
	}
	for _, file := range []string{"plan.html", "launch.sh"} { // that the commands are to write
		if st, err := os.Stat(filepath.Join(dir, file)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
}
