package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/plan"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

var (
	fence       = regexp.MustCompile("(?ms)^ *(```|~~~).*?^ *(```|~~~) *$")
	inlineCode  = regexp.MustCompile("`[^`\n]+`")
	link        = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	headings    = regexp.MustCompile(`(?m)^#+ +(.*?) *$`)
	headingLink = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)
	punctuation = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	docPath     = regexp.MustCompile(`\bdocs/[A-Za-z0-9_/-]+\.(md|svg)\b`)
	codePath    = regexp.MustCompile("`((bench|cmd|datasets|docs|perfmodel|planner|profiler|scheduler)/[A-Za-z0-9_./-]*[A-Za-z0-9_])`")
)

// notYet are the paths of files that a page tells its reader to write.
var notYet = regexp.MustCompile(`/widest(_test)?\.go$|/NAME`)

// TestLinks checks that every link between files of the repository leads to a file
// and to a heading, and that every documentation page or source path that a file
// names exists.
func TestLinks(t *testing.T) {
	root := moduleDir(t)
	for _, file := range treeFiles(t) {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			continue // deleted, not yet committed
		}
		for _, page := range docPath.FindAllString(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, page)); err != nil {
				t.Errorf("%s names %s: no such file", file, page)
			}
		}
		if filepath.Ext(file) != ".md" {
			continue
		}
		prose := fence.ReplaceAllString(string(text), "")
		for _, m := range codePath.FindAllStringSubmatch(prose, -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil && !notYet.MatchString(m[1]) {
				t.Errorf("%s names %s: no such file or directory", file, m[1])
			}
		}
		for _, m := range link.FindAllStringSubmatch(inlineCode.ReplaceAllString(prose, ""), -1) {
			if why := brokenLink(root, file, m[1]); why != "" {
				t.Errorf("%s: link %s: %s", file, m[1], why)
			}
		}
	}
}

// brokenLink returns what is wrong with a link in a file, or "". Links to other
// sites are not checked.
func brokenLink(root, file, target string) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return ""
	}
	path, anchor, _ := strings.Cut(target, "#")
	abs := filepath.Join(root, file)
	if path != "" {
		abs = filepath.Join(filepath.Dir(abs), path)
	}
	if !strings.HasPrefix(abs, root+string(filepath.Separator)) {
		return "leaves the repository"
	}
	if _, err := os.Stat(abs); err != nil {
		return "no such file"
	}
	if anchor == "" {
		return ""
	}
	text, err := os.ReadFile(abs)
	if err != nil {
		return err.Error()
	}
	if !anchors(string(text))[anchor] {
		return "no such heading"
	}
	return ""
}

// anchors returns the anchors GitHub gives the headings of a Markdown file.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	count := map[string]int{}
	for _, m := range headings.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		title := headingLink.ReplaceAllString(m[1], "$1")
		name := strings.ReplaceAll(punctuation.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
		if n := count[name]; n > 0 {
			found[name+"-"+string(rune('0'+n))] = true
		} else {
			found[name] = true
		}
		count[name]++
	}
	return found
}

func TestAnchors(t *testing.T) {
	got := anchors("# A `b`: c_d\n```sh\n# no heading\n```\n## [x](y.md), z\n## Same\n## Same\n")
	for _, want := range []string{"a-b-c_d", "x-z", "same", "same-1"} {
		if !got[want] {
			t.Errorf("no anchor %s in %v", want, got)
		}
	}
	if len(got) != 4 {
		t.Errorf("anchors %v", got)
	}
}

// TestArchitecture: docs/concepts/architecture.md has a line for every package, and none for others.
func TestArchitecture(t *testing.T) {
	text := spectest.ReadFile(t, filepath.Join(moduleDir(t), "docs/concepts/architecture.md"))
	var packages, lines []string
	for _, p := range modulePackages(t) {
		if path, ok := strings.CutPrefix(p.ImportPath, module+"/"); ok && len(p.GoFiles) > 0 {
			packages = append(packages, path)
		}
	}
	for _, m := range packageLine.FindAllStringSubmatch(string(text), -1) {
		lines = append(lines, m[1])
	}
	slices.Sort(packages)
	slices.Sort(lines)
	if diff := cmp.Diff(packages, lines); diff != "" {
		t.Errorf("lines of architecture.md are not the packages (-packages +lines):\n%s", diff)
	}
}

// packageLine is a line of the tables of packages. Other tables have methods in their first column.
var packageLine = regexp.MustCompile("(?m)^\\| `([a-z0-9/]+)` \\| ")

var docFlag = regexp.MustCompile(`(?:^|[^\w-])--([a-z][a-z0-9-]+)`)

// commandKey is the key command of a campaign file: a command line of other programs, in a block of several lines.
var commandKey = regexp.MustCompile(`(?m)^( *)command: >\n(?:    +.*\n)+`)

// otherProgram is a command line of another program, with the lines that it continues on.
var otherProgram = regexp.MustCompile(`(?m)\b(?:sbatch|kubectl|systemctl|useradd) (?:.*\\\n)*.*`)

// TestDocumentedFlags: every flag that a page or an experiment names is a flag of some
// command. Pages with flags of other programs or of earlier versions are not read.
func TestDocumentedFlags(t *testing.T) {
	known := map[string]bool{"help": true, "version": true, "no-install-recommends": true}
	eachCommand(command.Prepare(newApp(), plan.Groups).Commands, nil, func(_ []string, c *cli.Command) {
		for _, f := range c.Flags {
			for _, name := range f.Names() {
				known[name] = true
			}
		}
	})
	root := moduleDir(t)
	for _, file := range treeFiles(t) {
		switch {
		case file == "docs/CHANGELOG.md", file == "docs/guides/launch-files.md":
			continue
		case file == "README.md", strings.HasPrefix(file, "docs/") && filepath.Ext(file) == ".md", strings.HasPrefix(file, "bench/") && filepath.Ext(file) == ".sh":
		default:
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			continue // deleted, not yet committed
		}
		for _, m := range docFlag.FindAllStringSubmatch(otherProgram.ReplaceAllString(commandKey.ReplaceAllString(string(text), ""), ""), -1) {
			if !known[m[1]] {
				t.Errorf("%s names --%s: no command has that flag", file, m[1])
			}
		}
	}
}
