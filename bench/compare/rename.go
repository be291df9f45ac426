package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// renames has the new names and the expected differences. It is read from a table of
// lines "KIND | OLD | NEW | REMARK":
//
//	flag      --old becomes --new; - for NEW drops the flag and its value
//	setting   --old VALUE becomes key=VALUE of flag --new, written as NEW = "--new key"
//	option    old=value becomes new=value in NAME:old=value, of the policies in REMARK
//	field     a field of JSON or a column of CSV; - for OLD is an added field, - for
//	          NEW a removed one
//	name      a whole word among arguments and values: of a policy, a family, a quirk
//	text      any text in arguments and input files
//	other     a rename outside of the compared values
//	expected  OLD is a regular expression for expected differences, as printed after
//	          their group and command, "plan: pacer plan -n 8: exit: 3 -> 2"; it has
//	          no | between blanks; NEW is the reason
type renames struct {
	flags, fields, names map[string]string
	settings             map[string][2]string // flag and key by old flag
	values               map[string]string    // of names, and options as listings name them
	added                map[string]bool
	options              []optionRename
	texts                [][2]string
	expected             []*regexp.Regexp
}

type optionRename struct {
	match *regexp.Regexp
	new   string
}

func parseRenames(table string) (*renames, error) {
	r := &renames{flags: map[string]string{}, fields: map[string]string{}, names: map[string]string{},
		values: map[string]string{}, added: map[string]bool{}, settings: map[string][2]string{}}
	for n, line := range strings.Split(table, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.SplitN(line, " | ", 4)
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) < 3 {
			return nil, fmt.Errorf("renames:%d: want KIND | OLD | NEW [| REMARK]: %s", n+1, line)
		}
		for i, c := range cells[:3] {
			if c == "-" {
				cells[i] = ""
			}
		}
		if err := r.add(cells[0], cells[1], cells[2], cells[3:]); err != nil {
			return nil, fmt.Errorf("renames:%d: %w", n+1, err)
		}
	}
	return r, nil
}

func (r *renames) add(kind, old, new string, remark []string) error {
	switch kind {
	case "flag":
		r.flags[strings.TrimLeft(old, "-")] = strings.TrimLeft(new, "-")
	case "setting":
		flag, key, _ := strings.Cut(new, " ")
		r.settings[old] = [2]string{flag, key}
	case "option":
		policies := `[a-z0-9-]+`
		if len(remark) > 0 && remark[0] != "" {
			policies = strings.NewReplacer(", ", "|", ",", "|", " ", "|").Replace(regexp.QuoteMeta(remark[0]))
		}
		match, err := regexp.Compile(`((?:^|[^a-z0-9-])(?:` + policies + `):(?:[^,]*:)?)` + regexp.QuoteMeta(old) + `\b`)
		if err != nil {
			return err
		}
		r.options = append(r.options, optionRename{match, new})
		r.values[old] = new
	case "field", "field added":
		if old == "" {
			r.added[new] = true
		} else {
			r.fields[old] = new
		}
	case "name":
		r.names[old], r.values[old] = new, new
	case "text":
		r.texts = append(r.texts, [2]string{old, new})
	case "expected":
		match, err := regexp.Compile(old)
		if err != nil {
			return err
		}
		r.expected = append(r.expected, match)
	case "other": // a remark
	default:
		return fmt.Errorf("kind %q, want flag, option, field, name, text, expected or other", kind)
	}
	return nil
}

// arguments returns the arguments of the new binary for a command of the old one.
func (r *renames) arguments(old []string) []string {
	var out []string
	old, given := r.takeSettings(old)
	for i := 0; i < len(old); i++ {
		word := r.text(old[i])
		name, value, hasValue := strings.Cut(word, "=")
		new, renamed := r.flags[strings.TrimLeft(name, "-")]
		switch {
		case !strings.HasPrefix(word, "--") || !renamed:
			out = append(out, r.words(word))
		case new == "" && !hasValue && i+1 < len(old) && !strings.HasPrefix(old[i+1], "-"):
			i++
		case new == "":
		case hasValue:
			out = append(out, "--"+new+"="+value)
		default:
			out = append(out, "--"+new)
		}
	}
	return addSettings(out, given)
}

// setting is a key=value of a flag that holds several; value is "" for a switch.
type setting struct{ flag, key, value string }

// switches are flags of the old binary without a value that are settings now.
var switches = []string{"--tp-across-nodes", "--in-place", "--tied-embeddings", "--no-value"}

// takeSettings splits the arguments of the old binary into settings and the rest.
func (r *renames) takeSettings(old []string) (rest []string, given []setting) {
	training := slices.Contains(old, "learn")
	for i := 0; i < len(old); i++ {
		name, value, hasValue := strings.Cut(old[i], "=")
		to, ok := r.settings[name]
		if training {
			to[0] = "--set"
		}
		switch {
		case !ok || to[0] == "--set" && !training:
			rest = append(rest, old[i])
			continue
		case slices.Contains(switches, name):
		case !hasValue && i+1 < len(old):
			i++
			value = old[i]
		}
		given = append(given, setting{to[0], to[1], strings.ReplaceAll(value, ",", "+")})
	}
	return rest, given
}

// addSettings adds settings to the arguments of the new binary: to an existing value of --objective
// and --model, else as separate flags.
func addSettings(out []string, given []setting) []string {
	for _, s := range given {
		item := strings.TrimSuffix(s.key+"="+s.value, "=")
		at := slices.IndexFunc(out, func(a string) bool { return a == s.flag || s.flag == "--model" && a == "-m" })
		switch {
		case s.flag == "--objective" && at < 0:
			out = append(out, s.flag, "throughput:"+item)
		case s.flag == "--objective":
			out[at+1] += ":" + item
		case s.flag == "--model" && at < 0:
			out = append(out, s.flag, item)
		case s.flag == "--model" && !strings.Contains(out[at+1], "="):
			out[at+1] = "name=" + out[at+1] + "," + item
		case s.flag == "--model":
			out[at+1] += "," + item
		case s.flag == "--batch-range" && at < 0:
			out = append(out, s.flag, s.value)
		case s.flag == "--batch-range":
			out[at+1] += "-" + s.value
		default:
			out = append(out, s.flag, item)
		}
	}
	return out
}

// text is an input file or an argument as the new binary reads it.
func (r *renames) text(old string) string {
	for _, t := range r.texts {
		old = strings.ReplaceAll(old, t[0], t[1])
	}
	for _, o := range r.options {
		old = o.match.ReplaceAllString(old, "${1}"+o.new)
	}
	return old
}

var wordPattern = regexp.MustCompile(`[A-Za-z0-9_-]+`)

func (r *renames) words(old string) string {
	if len(r.names) == 0 || strings.HasPrefix(old, "-") {
		return old
	}
	return wordPattern.ReplaceAllStringFunc(old, func(word string) string {
		if new, ok := r.names[word]; ok {
			return new
		}
		return word
	})
}

func (r *renames) value(old string) string {
	if new, ok := r.values[old]; ok {
		return new
	}
	return old
}

func (r *renames) field(old string) string {
	if new, ok := r.fields[old]; ok {
		return new
	}
	return old
}

// wanted reports whether the table expects a difference.
func (r *renames) wanted(difference string) bool {
	return slices.ContainsFunc(r.expected, func(e *regexp.Regexp) bool { return e.MatchString(difference) })
}
