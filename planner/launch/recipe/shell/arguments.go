package shell

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// Present is the value of an option without one.
const Present = "true"

// Arguments returns the options of a command line: words that begin with --, with the words that follow. Their keys are
// spelled --like-this, or like_this with underscores. Programs, words that end in .py, have the key program.
func Arguments(words []string, underscores bool) (out []keyfile.Entry) {
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
		if underscores {
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
				e.Value, e.Bare = Present, true
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

var assignment = regexp.MustCompile(`^\+{0,2}([a-z][a-z0-9_.]*)=(.*)$`)

// Assignments returns the words KEY=VALUE, and +KEY=VALUE of Hydra, and the YAML file before them under the key config.
func Assignments(words []string) (out []keyfile.Entry) {
	for _, w := range words {
		if m := assignment.FindStringSubmatch(w); m != nil && len(out) < keyfile.MaxEntries {
			out = append(out, keyfile.Entry{Key: m[1], Value: m[2]})
		} else if strings.HasSuffix(w, ".yml") || strings.HasSuffix(w, ".yaml") {
			out = append(out, keyfile.Entry{Key: "config", Value: w})
		}
	}
	return out
}

// IsBare reports whether an option is written without a value.
func IsBare(entries []keyfile.Entry, key string) bool {
	return slices.ContainsFunc(entries, func(e keyfile.Entry) bool { return e.Key == key && e.Bare })
}
