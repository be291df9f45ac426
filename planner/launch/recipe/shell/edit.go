package shell

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// maxAnchors bounds the options that a new one is put before, to try.
const maxAnchors = 8

// OptionEdit is a change of an option in the text of a script.
type OptionEdit struct {
	Key, Value string // a Value of Present is an option without one, unless the script has it with one
	Remove     bool
	Assigned   bool            // options are KEY=VALUE and not --KEY VALUE
	Options    []keyfile.Entry // of the script, from Arguments or Assignments
	Before     []string        // keys that a new option is put before, rather than before others of Options
}

// EditOption returns the texts that a change of an option may lead to: the variable that an option takes its value from
// assigned anew, the option with another value in each place where it stands, or a new option before one of the script's.
// The caller runs them to find one that makes the change.
func EditOption(text string, o OptionEdit) (out []string) {
	name := anyDash.Replace(regexp.QuoteMeta(strings.TrimPrefix(o.Key, "--")))
	before, between := `(^|[\s"'(])--`, `(?:[ \t]+|=)`
	if o.Assigned {
		before, between = `(^|[\s"'(])`, "="
	}
	value := o.Value
	if strings.ContainsAny(value, " *") {
		value = `"` + value + `"`
	}
	bare := IsBare(o.Options, o.Key)
	flag := o.Value == Present && (bare || !slices.ContainsFunc(o.Options, func(e keyfile.Entry) bool { return e.Key == o.Key })) || o.Remove && bare
	pattern := before + name
	if !flag && !bare {
		pattern += between + `("[^"\n]*"|'[^'\n]*'|[^\s"'\\)]+)`
		if o.Remove { // all of its values
			pattern += `(?:[ \t]+[^\s"'\\)-][^\s"'\\)]*)*`
		}
	}
	re, err := regexp.Compile(pattern + `([\s"'\\)]|$)`)
	if err != nil {
		return nil
	}
	for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
		start, end := m[3], m[len(m)-2]
		switch {
		case o.Remove:
			out = append(out, withoutOption(text, start, end))
		case bare && !flag:
			out = append(out, text[:end]+" "+value+text[end:])
		case !flag:
			out = append(assignedAnew(text, text[m[4]:m[5]], o.Value), append(out, text[:m[4]]+value+text[m[5]:])...)
		}
	}
	if o.Remove || len(out) > 0 {
		return out
	}
	return insertedOption(text, value, o)
}

// anyDash lets a name match with both spellings of its words.
var anyDash = strings.NewReplacer("-", "[-_]", "_", "[-_]")

// withoutOption removes an option, with its line where it stands alone on it.
func withoutOption(text string, start, end int) string {
	if line, after := keyfile.LineOf(text, start); strings.TrimSpace(text[line:start])+strings.Trim(text[end:after], " \t\\\n") == "" && strings.Contains(text[end:after], `\`) {
		return text[:line] + text[after:]
	}
	return text[:start] + strings.TrimPrefix(text[end:], " ")
}

var variable = regexp.MustCompile(`^"?\$\{?(\w+)(?::?-[^}]*)?\}?"?$`)

// assignedAnew gives the variable of a value such as ${TP} or ${TP:-8} another one, in each place that assigns a plain one.
func assignedAnew(text, written, value string) (out []string) {
	v := variable.FindStringSubmatch(written)
	if v == nil {
		return nil
	}
	re := regexp.MustCompile(`(?m)(?:^|[\s;])` + v[1] + `=["']?(?:\$\{\w+:?-)?([\w.+]+)["'}]*(?:[\s;]|$)`)
	for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
		out = append(out, text[:m[2]]+value+text[m[3]:])
	}
	return out
}

// ownLine puts an option on a line of its own before the line that begins with another one, and ends it as its neighbours.
func ownLine(text string, at int, option string) []string {
	start, end := keyfile.LineOf(text, at)
	if start == 0 || strings.TrimSpace(text[start:at]) != "" {
		return nil
	}
	last := "\n"
	for _, line := range []string{text[start:end], text[:start]} {
		if strings.HasSuffix(strings.TrimRight(line, " \t\r\n"), `\`) {
			last = " \\\n"
		}
	}
	return []string{text[:start] + text[start:at] + strings.TrimSpace(option) + last + text[start:]}
}

// insertedOption puts an option before one that the script has: before each of o.Before, or else before others.
func insertedOption(text, value string, o OptionEdit) (out []string) {
	spelled := func(key string) string { return "--" + strings.TrimPrefix(key, "--") }
	option, anchors := spelled(o.Key)+" "+value+" ", `--(?:%s)\b`
	switch {
	case o.Assigned:
		option, anchors = o.Key+"="+value+" ", `\b(?:%s)=`
	case o.Value == Present:
		option = spelled(o.Key) + " "
	}
	places := regexp.MustCompile(fmt.Sprintf(anchors, strings.Join(o.Before, "|"))).FindAllStringIndex(text, maxAnchors)
	for _, e := range o.Options {
		anchor := spelled(e.Key) + " "
		if o.Assigned {
			anchor = e.Key + "="
		}
		if m := strings.Index(text, anchor); m >= 0 && len(places) < maxAnchors {
			places = append(places, []int{m})
		}
	}
	for _, m := range places {
		if m[0] == 0 || text[m[0]-1] != '"' && text[m[0]-1] != '\'' { // not quoted with its value
			out = append(out, ownLine(text, m[0], option)...)
			out = append(out, text[:m[0]]+option+text[m[0]:])
		}
	}
	return out
}
