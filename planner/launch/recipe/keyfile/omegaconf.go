package keyfile

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// maxResolves bounds the interpolations of a file, and maxChain those within each other.
const (
	maxResolves = 1 << 12
	maxChain    = 16
)

// Resolve replaces OmegaConf's interpolations ${key}, ${.key}, ${oc.env:NAME,default} and ${multiply:a,b}. A key that begins
// with the name under which the file is included, such as training, is looked up without it. What cannot be resolved stays.
func Resolve(entries []Entry, given map[string]string) []Entry {
	values := map[string]string{}
	for i := range entries {
		values[entries[i].Key] = entries[i].Value
	}
	o := omega{values: values, given: given}
	for i := range entries {
		if strings.Contains(entries[i].Value, "${") {
			entries[i].Value = o.text(entries[i].Key, entries[i].Value, 0)
			entries[i].IsNull = entries[i].Value == ""
			entries[i].Follows = true
		}
	}
	return entries
}

type omega struct {
	values, given map[string]string
	steps         int
}

var innermost = regexp.MustCompile(`\$\{([^${}]*)\}`)

// text resolves the interpolations of the value of key, the inner ones first.
func (o *omega) text(key, value string, depth int) string {
	for o.steps < maxResolves && depth < maxChain && len(value) < 4096 {
		m := innermost.FindStringSubmatchIndex(value)
		if m == nil {
			break
		}
		o.steps++
		with, ok := o.one(key, value[m[2]:m[3]], depth)
		if !ok {
			break
		}
		value = value[:m[0]] + with + value[m[1]:]
	}
	return value
}

// one resolves the inside of one interpolation.
func (o *omega) one(key, inside string, depth int) (string, bool) {
	if v, ok := o.given[inside]; ok {
		return v, true
	}
	if name, arguments, ok := strings.Cut(inside, ":"); ok && name == "oc.env" {
		variable, otherwise, has := strings.Cut(arguments, ",")
		if v, ok := o.given[strings.TrimSpace(variable)]; ok {
			return v, true
		}
		return strings.Trim(otherwise, ` '"`), has
	} else if ok {
		return calculated(name, strings.Split(arguments, ","))
	}
	target := inside
	if strings.HasPrefix(inside, ".") {
		base := key
		for strings.HasPrefix(target, ".") {
			target = target[1:]
			base = base[:max(strings.LastIndex(base, "."), 0)]
		}
		target = Joined(base, target)
	}
	v, ok := o.values[target]
	if _, rest, cut := strings.Cut(target, "."); !ok && cut {
		v, ok = o.values[rest]
		target = rest
	}
	if !ok {
		return "", false
	}
	return o.text(target, v, depth+1), true
}

// calculated applies the arithmetic resolvers of NeMo.
func calculated(name string, arguments []string) (string, bool) {
	var v []float64
	for _, a := range arguments {
		n, err := strconv.ParseFloat(strings.TrimSpace(a), 64)
		if err != nil {
			return "", false
		}
		v = append(v, n)
	}
	if len(v) < 2 {
		return "", false
	}
	out := v[0]
	for _, x := range v[1:] {
		switch name {
		case "multiply":
			out *= x
		case "sum", "add":
			out += x
		case "divide_ceil":
			out = math.Ceil(out / x)
		case "divide_floor", "int_div":
			out = math.Floor(out / x)
		default:
			return "", false
		}
	}
	if math.IsNaN(out) || math.Abs(out) > MaxNumber {
		return "", false
	}
	return strconv.FormatFloat(out, 'f', -1, 64), true
}
