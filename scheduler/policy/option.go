package policy

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Option is a setting of a policy. It is a number if Max is above Min, else a text or
// a truth value. A number without a Max has no valid value.
type Option struct {
	Name     string
	Default  string
	Unit     string  // "s" for seconds; empty for counts, ratios and texts
	Min, Max float64 // range of a number, both included
	Doc      string  // one line: what it sets
}

// Values reads options: those set, and the declared defaults of the others. It keeps
// the first error, which Err returns; after an error all values are meaningless.
type Values struct {
	declared []Option
	set      map[string]string
	err      error
}

// Values returns the values of declared options.
func (d Deps) Values(declared []Option) *Values { return &Values{declared: declared, set: d.Options} }

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
		v.fail("%s=%s is not a number in [%g, %g]", name, text, o.Min, o.Max)
		return 0
	}
	return x
}

// Int returns a whole number in the range of the option.
func (v *Values) Int(name string) int {
	x := v.Float(name)
	n := int(x)
	if float64(n) != x {
		v.fail("%s=%g is not a whole number", name, x)
	}
	return n
}

// Seconds returns a time.
func (v *Values) Seconds(name string) time.Duration {
	return time.Duration(v.Float(name) * float64(time.Second))
}

// Bool returns a truth value.
func (v *Values) Bool(name string) bool {
	_, text := v.read(name)
	b, err := strconv.ParseBool(text)
	if err != nil {
		v.fail("%s=%s is neither true nor false", name, text)
	}
	return b
}
