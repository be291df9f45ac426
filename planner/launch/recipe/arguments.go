package recipe

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
	"github.com/pacer-ml/pacer/planner/launch/recipe/shell"
)

// present is the value of an option without one.
const present = "true"

// leastScore is the score of a command that starts training.
const leastScore = 6

// launches returns the arguments of the commands of a script, in the form of a format. Where no command has arguments of
// the format, all variables of the script are taken together: fragments are sourced by other scripts.
func (f *format) launches(s *shell.Script) (out [][]keyfile.Entry) {
	most := 0
	for _, words := range s.Commands {
		entries := f.arguments(words)
		out = append(out, entries)
		most = max(most, f.score(entries))
	}
	if most >= leastScore {
		return out
	}
	return append(out, f.arguments(s.Options()))
}

// others counts the commands that start training with other arguments than those that are read. The score of those is most.
func (f *format) others(s *shell.Script, read []keyfile.Entry, most int) (n int) {
	seen := [][]keyfile.Entry{read}
	for _, words := range s.Commands {
		entries := f.arguments(words)
		same := func(e []keyfile.Entry) bool { return reflect.DeepEqual(e, entries) }
		if f.score(entries) >= max(leastScore, most*3/4) && !slices.ContainsFunc(seen, same) {
			seen = append(seen, entries)
			n++
		}
	}
	return n
}

// arguments returns the options of a command line: words that begin with --, with the words that follow; or words of the
// form KEY=VALUE.
func (f *format) arguments(words []string) (out []keyfile.Entry) {
	if f.assignments {
		return assignments(words)
	}
	for i := 0; i < len(words) && len(out) < keyfile.MaxEntries; i++ {
		if strings.HasSuffix(words[i], ".py") {
			out = append(out, keyfile.Entry{Key: "program", Value: words[i]})
		}
		name, value, given := strings.Cut(words[i], "=")
		name, isFlag := strings.CutPrefix(name, "--")
		if !isFlag || name == "" {
			continue
		}
		e := keyfile.Entry{Key: "--" + strings.ReplaceAll(name, "_", "-"), Value: value}
		if f.underscores {
			e.Key = strings.ReplaceAll(name, "-", "_")
		}
		if !given {
			from := i + 1
			for i+1 < len(words) && isValue(words[i+1]) {
				i++
			}
			if e.Value = strings.Join(words[from:i+1], " "); i > from {
				e.List = words[from : i+1]
			}
			if i < from {
				e.Value, e.Bare = present, true
			}
		}
		out = append(out, e)
	}
	return out
}

// isValue reports whether a word is the value of the option before it.
func isValue(w string) bool {
	if strings.HasSuffix(w, ".py") || strings.HasPrefix(w, "--") {
		return false
	}
	_, err := strconv.ParseFloat(w, 64)
	return err == nil || !strings.HasPrefix(w, "-")
}

var assignment = regexp.MustCompile(`^([a-z][a-z0-9_.]*)=(.*)$`)

// assignments returns the words KEY=VALUE, and the YAML file before them.
func assignments(words []string) (out []keyfile.Entry) {
	for _, w := range words {
		if m := assignment.FindStringSubmatch(w); m != nil && len(out) < keyfile.MaxEntries {
			out = append(out, keyfile.Entry{Key: m[1], Value: m[2]})
		} else if strings.HasSuffix(w, ".yml") || strings.HasSuffix(w, ".yaml") {
			out = append(out, keyfile.Entry{Key: "config", Value: w})
		}
	}
	return out
}

var sbatchPerNode = regexp.MustCompile(`(?m)^\s*#SBATCH\s+(?:--gres=gpu(?::[\w.-]+)?:|--gpus-per-node=(?:[\w.-]+:)?|--ntasks-per-node=)(\d+)`)

// slurm sets the nodes of the #SBATCH lines, and the devices of a node as the largest number in them.
func (r *Recipe) slurm(s *shell.Script) {
	if s.Nodes != "" {
		r.numbers[Nodes], _ = strconv.Atoi(s.Nodes)
	}
	for _, m := range sbatchPerNode.FindAllStringSubmatch(r.text, -1) {
		if n, _ := strconv.Atoi(m[1]); n > r.numbers[PerNode] {
			r.numbers[PerNode] = n
		}
	}
	if uneven := s.Array("DEVICES"); uneven != nil { // as package launch writes them
		total := 0
		for _, text := range uneven {
			n, _ := strconv.Atoi(text)
			total += n
		}
		if total > 0 && total < keyfile.MaxNumber {
			r.numbers[Devices] = total
		}
	}
}
