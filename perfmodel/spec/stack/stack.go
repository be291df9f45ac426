package stack

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// all holds every release, by line in the order of lines, then by date.
var all = build()

// build panics if a table is not valid, since the program is broken then.
func build() [][]Stack {
	out := make([][]Stack, len(lines))
	for i := range lines {
		l := &lines[i]
		p := usual
		for _, r := range l.releases {
			for _, part := range strings.Fields(r.parts) {
				name, value, _ := strings.Cut(part, "=")
				if err := p.set(name, value); err != nil {
					panic(fmt.Sprintf("stack: %s: %v", l.name, err))
				}
			}
			s := Stack{Name: l.name, Version: r.version, Date: r.date, Parts: p, Reports: l.reports, Source: l.source}
			if s.Reports == "" {
				s.Reports = Device
			}
			out[i] = append(out[i], s)
		}
	}
	return out
}

// All returns every release of every training stack, by name, then by date.
func All() []Stack { return slices.Concat(all...) }

// Usual returns the parts of a PyTorch program without further libraries.
func Usual() Parts { return usual }

// Names returns the names of all training stacks.
func Names() []string {
	var out []string
	for i := range lines {
		out = append(out, lines[i].name)
	}
	return out
}

// Aliases returns further names of a training stack.
func Aliases(name string) []string {
	if i := lineOf(name); i >= 0 {
		return lines[i].aliases
	}
	return nil
}

// lineOf returns the index of a name or alias in lines, -1 if there is none.
func lineOf(name string) int {
	if i, ok := lineAt[named.Fold(name)]; ok {
		return i
	}
	return -1
}

// lineAt is the index in lines of each name and alias, folded.
var lineAt = func() map[string]int {
	out := map[string]int{}
	for i := range lines {
		for _, name := range append([]string{lines[i].name}, lines[i].aliases...) {
			out[named.Fold(name)] = i
		}
	}
	return out
}()

// Stated is what a text says about a training stack.
type Stated struct {
	Name    string // canonical, or as stated if it is not in the table; "" = not stated
	release string // version or date, "" = not stated
	until   string // latest date, YYYY-MM, "" = none
	parts   []string
	line    int // in lines, -1 for another stack and for none
}

// Canonical returns the text of s: Parse(s.Canonical()) equals s.
func (s *Stated) Canonical() string {
	out := s.Name
	switch {
	case s.release != "":
		out += "@" + s.release
	case s.until != "":
		out += "@.." + s.until
	}
	for _, p := range s.parts {
		out += " " + p
	}
	return strings.TrimSpace(out)
}

// Until returns s with a latest date, such as 2024 or 2024-07-29, unless it states a release or an earlier date. A text
// that is no date changes nothing.
func (s Stated) Until(date string) Stated {
	if s.release == "" && dateForm.MatchString(date) {
		if m := month(date, true); s.until == "" || m < s.until {
			s.until = m
		}
	}
	return s
}

// At returns s with a release, such as 0.13, unless it states one. A text that is no release of the stack changes
// nothing.
func (s Stated) At(release string) Stated {
	if s.release == "" {
		_ = s.setRelease(release) // which changes s only without an error
	}
	return s
}

// Release returns the text that states a release of the table, with the parts that s states.
func (s *Stated) Release(of *Stack) string {
	at := Stated{Name: of.Name, release: of.Version, parts: s.parts}
	if at.release == "" {
		at.release = of.Date
	}
	return at.Canonical()
}

// Known reports whether the stack's name is in the table, or not stated.
func (s *Stated) Known() bool { return s.line >= 0 || s.Name == "" }

var (
	dateForm    = regexp.MustCompile(`^(19|20)[0-9]{2}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?$`)
	versionForm = regexp.MustCompile(`^v?[0-9]+(\.[0-9]+)*([.-]?(a|alpha|b|beta|rc|post|dev)[0-9]*)*(\+[0-9A-Za-z.]+)?$`)
	numbersForm = regexp.MustCompile(`^v?[0-9]+(\.[0-9]+)*`)
)

// UnknownError reports the name of a training stack that is not in the table. Near is "" if no name is similar.
type UnknownError struct{ Name, Near string }

func (e *UnknownError) Error() string { return fmt.Sprintf("stack: %q %s", e.Name, e.Why()) }

// Why is the text of e without the name.
func (e *UnknownError) Why() string {
	if e.Near == "" {
		return "is not a known training stack"
	}
	return "is not a known training stack; the nearest is " + e.Near
}

// ReleaseError reports a release that is neither a version nor a date, or a version of a stack without any.
type ReleaseError struct{ Name, Release, Why string }

func (e *ReleaseError) Error() string {
	return fmt.Sprintf("stack: %s@%s: %s", e.Name, e.Release, e.Why)
}

// Parse reads a text that states a stack, in the form that the package comment describes. The error is an
// *UnknownError, *ReleaseError or *PartError. With an error the result is valid too: it has what could be read, and an
// unknown name as stated.
func Parse(text string) (Stated, error) {
	head, parts := cutParts(text)
	name, at, dated := strings.Cut(head, "@")
	s := Stated{Name: strings.TrimSpace(name)}
	var err error
	if s.line = lineOf(s.Name); s.line >= 0 {
		s.Name = lines[s.line].name
	} else if s.Name != "" {
		err = &UnknownError{Name: s.Name, Near: nearestStack(s.Name)}
	}
	if dated {
		err = cmp.Or(s.parseRelease(strings.TrimSpace(at)), err)
	}
	return s, cmp.Or(s.addParts(parts), err)
}

// addParts adds those of parts that are valid. The error is that of the first that is not, a *PartError.
func (s *Stated) addParts(parts []string) (err error) {
	var p Parts
	all := s.parts
	for _, part := range parts {
		kind, value, _ := strings.Cut(part, "=")
		if bad := p.set(kind, value); bad == nil {
			all = append(all, kind+"="+p.of(kind))
		} else if err == nil {
			err = bad
		}
	}
	s.parts = inOrder(all)
	return err
}

// nearestStack returns the name of the stack with the name or alias that is nearest, and NAME@VERSION for "NAME VERSION".
func nearestStack(name string) string {
	if i := strings.LastIndex(name, " "); i > 0 && versionForm.MatchString(name[i+1:]) {
		if of := lineOf(name[:i]); of >= 0 {
			return lines[of].name + "@" + name[i+1:]
		}
	}
	var all []string
	for i := range lines {
		all = append(append(all, lines[i].name), lines[i].aliases...)
	}
	if i := lineOf(nearest(name, all)); i >= 0 {
		return lines[i].name
	}
	return ""
}

// cutParts splits "NAME@RELEASE PART=VALUE ..." before the first part.
func cutParts(text string) (head string, parts []string) {
	words := strings.Fields(text)
	n := slices.IndexFunc(words, func(w string) bool { return strings.Contains(w, "=") })
	if n < 0 {
		return strings.Join(words, " "), nil
	}
	return strings.Join(words[:n], " "), words[n:]
}

// inOrder returns valid parts in the order of Kinds, of each kind the last one.
func inOrder(parts []string) []string {
	var out []string
	for i := range kinds {
		for _, part := range slices.Backward(parts) {
			if strings.HasPrefix(part, kinds[i].Name+"=") {
				out = append(out, part)
				break
			}
		}
	}
	return out
}

func (s *Stated) parseRelease(at string) error {
	until, ok := strings.CutPrefix(at, "..")
	if !ok {
		return s.setRelease(at)
	}
	if !dateForm.MatchString(until) {
		return &ReleaseError{s.Name, at, "want a date after .., such as ..2024-07"}
	}
	s.until = month(until, true)
	return nil
}

// setRelease states a release of s, or of the line that its own became before that release. The error is a
// *ReleaseError.
func (s *Stated) setRelease(at string) error {
	dated := dateForm.MatchString(at)
	line := s.line
	for line >= 0 && !has(line, at, dated) {
		line = lineOf(lines[line].after)
	}
	switch {
	case s.Name == "":
		return &ReleaseError{s.Name, at, "a release needs a name; write @..DATE for a stack of that date or before"}
	case !dated && (!versionForm.MatchString(at) || numbers(at)[0] >= 1900): // such as 2024.07
		return &ReleaseError{s.Name, at, "want a version, such as 0.13, or a date, such as 2024 or 2024-07"}
	case s.line >= 0 && line < 0:
		last := all[s.line][len(all[s.line])-1]
		return &ReleaseError{s.Name, at, fmt.Sprintf("its releases are known by date only, such as %s@%s", last.Name, last.Date)}
	case line >= 0:
		s.line, s.Name = line, lines[line].name
	}
	s.release, s.until = at, ""
	return nil
}

// has reports whether a line has versions, or whether it had not become another one at a date.
func has(line int, release string, dated bool) bool {
	if !dated {
		return all[line][0].Version != ""
	}
	next := lineOf(lines[line].after)
	return next < 0 || month(release, false) < all[next][0].Date
}

// month returns a date as YYYY-MM. A year alone is its last month if last is set, else its middle.
func month(date string, last bool) string {
	switch {
	case len(date) >= len("2006-01"):
		return date[:len("2006-01")]
	case last:
		return date + "-12"
	}
	return date + "-06"
}

// at returns the release that s states: the last one not later. ok is false if s leaves it open.
func (s *Stated) at() (of *Stack, ok bool) {
	if s.line < 0 || s.release == "" {
		return nil, false
	}
	releases := all[s.line]
	of = &releases[0] // earlier releases are not in the table
	dated := dateForm.MatchString(s.release)
	for i := range releases {
		r := &releases[i]
		if dated && r.Date <= month(s.release, false) || !dated && compareVersions(r.Version, s.release) <= 0 {
			of = r
		}
	}
	return of, true
}

// Before returns the text of the release before the one that text states, with the same further parts. ok is false if
// text states no release, or the first.
func Before(text string) (before string, ok bool) {
	s, err := Parse(text)
	of, stated := s.at()
	if err != nil || !stated {
		return text, false
	}
	i := slices.IndexFunc(all[s.line], func(r Stack) bool { return r.Date == of.Date })
	was := s
	switch j := slices.IndexFunc(lines, func(l line) bool { return l.after == of.Name }); {
	case i > 0:
		was.release = all[s.line][i-1].Date
	case j >= 0:
		was.Name, was.release = lines[j].name, all[j][len(all[j])-1].Date
	default:
		return text, false
	}
	return was.Canonical(), true
}

// compareVersions compares versions such as 0.13.1 number by number.
func compareVersions(a, b string) int {
	x, y := numbers(a), numbers(b)
	return slices.Compare(x, y)
}

func numbers(version string) []int {
	var out []int
	for _, n := range strings.Split(strings.TrimPrefix(numbersForm.FindString(version), "v"), ".") {
		v, _ := strconv.Atoi(n) // numbersForm has digits; a number out of range is the largest
		out = append(out, v)
	}
	return out
}
