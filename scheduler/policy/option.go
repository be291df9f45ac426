package policy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Option is a setting of a policy: a number if Max is above Min, a truth value if Default
// is true or false, else a text.
type Option struct {
	Name     string
	Default  string
	Unit     string   // of a number, such as "s"; empty for counts and ratios
	Min, Max float64  // range of a number, both included; Max may be Unbounded
	Words    []string // texts that a number may be instead
	Example  string   // of a text or a word: a valid value other than Default
	Doc      string   // one line without the unit and range: what it sets
}

// Unbounded is the Max of a number without an upper bound.
const Unbounded = math.MaxFloat64

func (o Option) isNumber() bool { return o.Max > o.Min }
func (o Option) isBool() bool   { return o.Default == "true" || o.Default == "false" }

// Range returns the valid values in words: "0 to 1e6 s", "true or false", or an example
// of a text; empty for a text without an example.
func (o Option) Range() string {
	switch {
	case o.isNumber():
		span := number(o.Min) + " to " + number(o.Max)
		if o.Max == Unbounded {
			span = "at least " + number(o.Min)
		}
		return strings.Join(append([]string{strings.TrimSpace(span + " " + o.Unit)}, o.Words...), " or ")
	case o.isBool():
		return "true or false"
	case o.Example != "":
		return "such as " + o.Example
	}
	return ""
}

// number writes x shortly: 1e9 instead of 1e+09.
func number(x float64) string { return strings.Replace(fmt.Sprintf("%g", x), "e+0", "e", 1) }

// Other returns a valid value that is not the default: half or double the default of a
// number if that is in range, else the end of the range that is not the default. It returns
// "" if there is none.
func (o Option) Other() string {
	switch {
	case o.isBool():
		return strconv.FormatBool(o.Default == "false")
	case !o.isNumber():
		return o.Example
	}
	x, err := strconv.ParseFloat(o.Default, 64)
	if err != nil {
		return o.Example
	}
	half := x / 2
	if whole := x == math.Trunc(x); x == 0 || whole && half != math.Trunc(half) {
		half = math.NaN() // a number that may have to be whole is doubled instead
	}
	for _, y := range []float64{half, max(1, 2*x), o.Max, o.Min} {
		if y != x && y >= o.Min && y <= o.Max {
			return number(y)
		}
	}
	return ""
}

// CheckOptions returns an error if two options have one name, if a default is out of range,
// or if an option has no valid value but its default. Options that name a file need none.
func CheckOptions(options []Option, files []string) error {
	for i, o := range options {
		if slices.ContainsFunc(options[:i], func(p Option) bool { return p.Name == o.Name }) {
			return fmt.Errorf("option %s is declared twice", o.Name)
		}
		if x, err := strconv.ParseFloat(o.Default, 64); o.isNumber() && !(err == nil && x >= o.Min && x <= o.Max) && !slices.Contains(o.Words, o.Default) {
			return fmt.Errorf("option %s: default %q, want %s", o.Name, o.Default, o.Range())
		}
		if o.Other() == "" && !slices.Contains(files, o.Name) {
			return fmt.Errorf("option %s has no valid value but its default: declare Min and Max of a number, or an Example of a text", o.Name)
		}
	}
	return nil
}

// Values reads options: those set, and the declared defaults of the others. It keeps
// the first error, which Err returns; after an error all values are meaningless.
type Values struct {
	declared []Option
	set      map[string]string
	err      error
}

// Values returns the values of options. It panics if the Info of a registered policy does
// not declare them.
func (d Deps) Values(options []Option) *Values {
	for _, o := range options {
		if d.declared != nil && d.declared.CheckOption(o.Name) != nil {
			panic("policy: " + d.declared.Name + " reads option " + o.Name + ", which its Info does not declare")
		}
	}
	return &Values{declared: options, set: d.Options}
}

// WithOptions returns d for a part with options of its own.
func (d Deps) WithOptions(options map[string]string) Deps {
	d.Options, d.declared = options, nil
	return d
}

// Err returns the first error, nil if all values read so far are valid.
func (v *Values) Err() error { return v.err }

// Given reports whether an option was set.
func (v *Values) Given(name string) bool {
	_, ok := v.set[name]
	return ok
}

// read returns an option and its text. It panics if the option is not declared.
func (v *Values) read(name string) (Option, string) {
	i := slices.IndexFunc(v.declared, func(o Option) bool { return o.Name == name })
	if i < 0 {
		panic("policy: option " + name + " is read and not declared")
	}
	if text, ok := v.set[name]; ok {
		return v.declared[i], text
	}
	return v.declared[i], v.declared[i].Default
}

func (v *Values) fail(format string, args ...any) {
	if v.err == nil {
		v.err = fmt.Errorf(format, args...)
	}
}

// Text returns an option as it is.
func (v *Values) Text(name string) string {
	_, text := v.read(name)
	return text
}

// Float returns a number in the range of the option.
func (v *Values) Float(name string) float64 {
	o, text := v.read(name)
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= o.Min && x <= o.Max) {
		v.fail("option %s %q: want a number, %s", name, text, o.Range())
		return 0
	}
	return x
}

// Int returns a whole number in the range of the option.
func (v *Values) Int(name string) int {
	x := v.Float(name)
	n := int(x)
	if o, text := v.read(name); float64(n) != x {
		v.fail("option %s %q: want a whole number, %s", name, text, o.Range())
	}
	return n
}

// Duration returns a time, of an option with Unit "s" or "h", at most MaxWait.
func (v *Values) Duration(name string) time.Duration {
	units := map[string]float64{"s": 1, "h": 3600}
	o, _ := v.read(name)
	sec, known := units[o.Unit]
	if !known {
		panic("policy: option " + name + " is read as a time and has unit \"" + o.Unit + "\", want s or h")
	}
	return time.Duration(min(v.Float(name)*sec*float64(time.Second), float64(MaxWait)))
}

// Bool returns a truth value.
func (v *Values) Bool(name string) bool {
	_, text := v.read(name)
	b, err := strconv.ParseBool(text)
	if err != nil {
		v.fail("option %s %q: want true or false", name, text)
	}
	return b
}
