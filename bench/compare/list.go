package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// A group is a list of commands that run one after the other in one directory.
type group struct {
	Name   string
	Golden bool   // outputs are kept in testdata/golden
	Shared bool   // needs the directory that PACER_SHARED names
	Slow   bool   // runs with -slow only
	Dir    string // the commands run in this directory of the inputs
	Steps  []step
}

// A step runs a command or shows a file that earlier commands wrote.
type step struct {
	Show  string   // file, empty for a command
	Args  []string // of the command, without its name
	Stdin string   // file, empty for none
	New   []string // arguments for the new binary where they are not Args after renaming
}

// parseList reads a list of commands:
//
//	[NAME MARK...]          begins a group; marks are golden, shared, slow and in=DIRECTORY
//	pacer ARG... [< FILE]   a command; $SHARED is the directory of PACER_SHARED
//	new: pacer ARG...       the last command, in the form for the new binary
//	show FILE               compares a file that was written
//
// A backslash at the end of a line continues it on the next one.
func parseList(text string) ([]group, error) {
	var groups []group
	text = strings.ReplaceAll(text, "\\\n", " ")
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := parseLine(&groups, line); err != nil {
			return nil, fmt.Errorf("commands: statement %d: %w: %s", n+1, err, line)
		}
	}
	return groups, nil
}

func parseLine(groups *[]group, line string) error {
	if head, ok := strings.CutPrefix(line, "["); ok {
		words := strings.Fields(strings.TrimSuffix(head, "]"))
		if len(words) == 0 {
			return fmt.Errorf("want a name")
		}
		g := group{Name: words[0]}
		for _, mark := range words[1:] {
			dir, inside := strings.CutPrefix(mark, "in=")
			switch {
			case mark == "golden":
				g.Golden = true
			case mark == "shared":
				g.Shared = true
			case mark == "slow":
				g.Slow = true
			case inside:
				g.Dir = dir
			default:
				return fmt.Errorf("mark %q, want golden, shared, slow or in=DIRECTORY", mark)
			}
		}
		*groups = append(*groups, g)
		return nil
	}
	if len(*groups) == 0 {
		return fmt.Errorf("want a [group] before")
	}
	g := &(*groups)[len(*groups)-1]
	words, err := splitWords(line)
	if err != nil {
		return err
	}
	switch words[0] {
	case "show":
		for _, file := range words[1:] {
			g.Steps = append(g.Steps, step{Show: file})
		}
	case "pacer":
		s := step{Args: words[1:]}
		if n := len(s.Args); n > 1 && s.Args[n-2] == "<" {
			s.Stdin, s.Args = s.Args[n-1], s.Args[:n-2]
		}
		g.Steps = append(g.Steps, s)
	case "new:":
		if len(g.Steps) == 0 || len(words) < 2 {
			return fmt.Errorf("want a command before it and after it")
		}
		g.Steps[len(g.Steps)-1].New = words[2:]
	default:
		return fmt.Errorf("want pacer, new: or show")
	}
	return nil
}

// splitWords splits a line at blanks outside single and double quotes.
func splitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	quote, inside := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inside = r, true
		case r == ' ' || r == '\t':
			if inside || word.Len() > 0 {
				words = append(words, word.String())
			}
			word.Reset()
			inside = false
		default:
			word.WriteRune(r)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("quote %q is not closed", quote)
	}
	if inside || word.Len() > 0 {
		words = append(words, word.String())
	}
	return words, nil
}

// selectGroups keeps the groups that can run here and that match. Without a
// pattern it leaves slow groups out, unless slow is set.
func selectGroups(groups []group, pattern string, slow bool, shared string) (run []group, skipped []string, err error) {
	match, err := regexp.Compile(pattern)
	if err != nil {
		return nil, nil, fmt.Errorf("-run %q: %w", pattern, err)
	}
	for _, g := range groups {
		switch {
		case !match.MatchString(g.Name):
		case g.Slow && !slow && pattern == "":
			skipped = append(skipped, g.Name+": slow, give -slow")
		case g.Shared && shared == "":
			skipped = append(skipped, g.Name+": needs PACER_SHARED")
		default:
			run = append(run, g)
		}
	}
	return run, skipped, nil
}

// sharedDir returns the directory of published data, "" if there is none.
func sharedDir() string {
	dir := os.Getenv("PACER_SHARED")
	if _, err := os.Stat(dir); dir == "" || err != nil {
		return ""
	}
	return dir
}
