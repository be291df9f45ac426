package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// commandPages are the pages with commands that a reader can run as they are, with the
// least number of them. Blocks marked sh are run; those marked console need what a test
// has not, such as a network, a GPU or minutes.
var commandPages = map[string]int{
	"README.md":                                    3,
	"docs/getting-started/install.md":              3,
	"docs/getting-started/plan-a-model.md":         11,
	"docs/getting-started/compare-policies.md":     4,
	"docs/getting-started/measure-your-machine.md": 3,
	"docs/guides/add-a-model.md":                   2,
	"docs/guides/calibrate.md":                     2,
	"docs/guides/launch-files.md":                  2,
	"docs/guides/studies.md":                       1,
	"docs/guides/workloads.md":                     2,
	"docs/design/planner.md":                       10,
}

var commandBlock = regexp.MustCompile("(?s)\n```sh\n(.*?)```")

// TestE2EPages runs the commands of pages, one block after the other, in a directory
// with nothing but the program and the campaigns, as after a first build.
func TestE2EPages(t *testing.T) {
	for page, least := range commandPages {
		t.Run(page, func(t *testing.T) { runPage(t, page, least) })
	}
	t.Run("targets", func(t *testing.T) {
		text := spectest.ReadFile(t, filepath.Join(moduleDir(t), "README.md"))
		if len(text) > 4<<10 {
			t.Errorf("README.md has %d bytes, want at most 4096", len(text))
		}
		for _, want := range []string{"make demo", "make test"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("README.md does not name %s", want)
			}
		}
	})
}

// runPage runs the commands of a page, and fails if there are fewer than least.
func runPage(t *testing.T, page string, least int) {
	root := moduleDir(t)
	text := spectest.ReadFile(t, filepath.Join(root, page))
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"bin/pacer": selfAs(t, "pacer"), "bench": filepath.Join(root, "bench")} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	ran := 0
	for _, block := range commandBlock.FindAllStringSubmatch(string(text), -1) {
		if regexp.MustCompile(`(?m)^(git clone|make demo)`).MatchString(block[1]) {
			continue // the clone and the build: done
		}
		script := regexp.MustCompile(`(?m)^make build$`).ReplaceAllString(block[1], ":")
		cmd := exec.Command("sh", "-euc", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+filepath.Join(dir, "data"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s\n%v\n%s", script, err, out)
		}
		ran += strings.Count("\n"+script, "\nbin/pacer ")
	}
	if ran < least {
		t.Errorf("only %d commands ran, want %d", ran, least)
	}
}
