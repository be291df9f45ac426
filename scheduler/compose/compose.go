package compose

import (
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/yamlfile"
	"github.com/pacer-ml/pacer/scheduler/admission"
	"github.com/pacer-ml/pacer/scheduler/compat"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
)

// Keys are the keys of a scheduler file, apart from description. Each has the name of its
// flag.
var Keys = []string{"policy", "admission", "placement", "round", "compat"}

// Read reads a scheduler file and returns its values by key, in the syntax of the flags.
// file is its name in messages, which have line and column. The error joins all mistakes.
func Read(file string, text []byte) (map[string]string, error) {
	f := &yamlfile.File{Name: file, Package: "compose", Kind: "scheduler"}
	out := map[string]string{}
	top := f.Parse(text)
	for _, e := range top.Entries(append([]string{"description"}, Keys...)...) {
		if !e.Value.Given() {
			f.Fail(e.At, "%s has no value: leave it out for its default", e.Key)
			continue
		}
		switch n := e.Value; e.Key {
		case "description":
			n.Text()
		case "policy":
			out[e.Key] = part(n, policies)
		case "admission":
			out[e.Key] = part(n, admissions)
		case "placement":
			out[e.Key] = n.Text()
			_, err := place.Lookup(out[e.Key])
			fail(n, out[e.Key], err)
		case "round":
			out[e.Key] = strconv.FormatFloat(n.Number(0, false, 1e9), 'f', -1, 64)
		case "compat":
			out[e.Key] = n.Text()
			_, err := compat.Parse(out[e.Key])
			fail(n, out[e.Key], err)
		}
	}
	if out["policy"] == "" && f.Count() == 0 {
		top.Fail("the scheduler has no policy, want a line like policy: las")
	}
	return out, f.Err()
}

// fail records an error of the value at n. An empty value is reported elsewhere.
func fail(n yamlfile.Node, words string, err error) {
	if err != nil && words != "" {
		n.Fail("%w", err)
	}
}

// registry looks up policies or admission rules.
type registry struct {
	options func(name string) ([]policy.Option, error)
	check   func(words string) error
}

var policies = registry{
	options: func(name string) ([]policy.Option, error) {
		info, err := builtin.Policies.Lookup(name)
		return info.Options, err
	},
	check: func(words string) error {
		specs, err := builtin.Policies.Parse(words)
		for _, s := range specs {
			if _, e := builtin.Policies.New(s, policy.Deps{}); err == nil {
				err = e
			}
		}
		return err
	},
}

var admissions = registry{
	options: func(name string) ([]policy.Option, error) {
		for _, info := range admission.All() {
			if info.Name == name {
				return info.Options, nil
			}
		}
		_, err := admission.Lookup(name)
		return nil, err
	},
	check: func(words string) error {
		_, err := admission.Lookup(words)
		return err
	},
}

// part reads a policy or admission rule as NAME[:key=value...], or as a mapping of name and
// options. It returns the syntax of the command line.
func part(n yamlfile.Node, known registry) string {
	if !n.IsMapping() {
		words := n.Text()
		if strings.Contains(words, ",") {
			n.Fail("%q is more than one, want one", words)
			return ""
		}
		fail(n, words, known.check(words))
		return words
	}
	return named(n, known)
}

// named reads a mapping of name and options. An invalid value is reported at its position.
func named(n yamlfile.Node, known registry) string {
	if !n.Key("name").Given() {
		n.Fail("no name, want a line like name: las")
		return ""
	}
	words := n.Key("name").Text()
	has, err := known.options(words)
	if err != nil {
		fail(n.Key("name"), words, err)
		return ""
	}
	keys := []string{"name"}
	for _, o := range has {
		keys = append(keys, o.Name)
	}
	name, sound := words, true
	for _, e := range n.Entries(keys...) {
		if e.Key == "name" {
			continue
		}
		value := list(e.Value)
		option := ":" + e.Key + "=" + value
		if err := known.check(name + option); err != nil {
			fail(e.Value, value, err)
			sound = false
		}
		words += option
	}
	if sound {
		fail(n, words, known.check(words))
	}
	return words
}

// list returns a value in the syntax of options: elements are joined by slashes, and
// colons in them become +.
func list(n yamlfile.Node) string {
	var out []string
	for _, e := range n.List() {
		words := e.Scalar()
		if n.IsList() {
			words = strings.ReplaceAll(words, ":", "+")
		}
		out = append(out, words)
	}
	return strings.Join(out, "/")
}
