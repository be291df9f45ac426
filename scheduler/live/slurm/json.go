package slurm

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// number is a number of Slurm's JSON: plain or null in 22.05, {set, infinite, number} in
// data_parser v0.0.39 and later. One that is not set or infinite is 0.
type number float64

func (n *number) UnmarshalJSON(b []byte) error {
	*n = 0
	if len(b) == 0 || b[0] != '{' {
		var v *float64
		if err := json.Unmarshal(b, &v); err != nil {
			return fmt.Errorf("%.80s is no number", b)
		}
		if v != nil {
			*n = number(*v)
		}
		return nil
	}
	var v struct {
		Set, Infinite bool
		Number        float64
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("%.80s is no number", b)
	}
	if v.Set && !v.Infinite {
		*n = number(v.Number)
	}
	return nil
}

// words are the words of a state: one string in 22.05, a list later.
type words []string

func (w *words) UnmarshalJSON(b []byte) error {
	*w = nil
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(w))
	}
	var one *string
	if err := json.Unmarshal(b, &one); err != nil {
		return err
	}
	if one != nil {
		*w = strings.FieldsFunc(*one, func(r rune) bool { return r == '+' || r == ',' || r == ' ' })
	}
	return nil
}

// has reports whether one of the words is one of those given, in any case.
func (w words) has(any ...string) bool {
	for _, word := range w {
		for _, a := range any {
			if strings.EqualFold(word, a) {
				return true
			}
		}
	}
	return false
}

// gres reads the GPUs of a GRES such as "gpu:a100:2(IDX:0-1)", "gpu:(null):2" or "gres/gpu:4", summed over its
// comma-separated items; others are ignored. Several types are joined by "+".
func gres(text string) (typ string, n int, err error) {
	for _, item := range splitOutside(text) {
		item, _, _ = strings.Cut(strings.ReplaceAll(item, "(null)", ""), "(")
		item = strings.TrimPrefix(strings.TrimPrefix(item, "gres/"), "gres:")
		parts := strings.FieldsFunc(item, func(r rune) bool { return r == ':' || r == '=' })
		if len(parts) == 0 || parts[0] != "gpu" {
			continue
		}
		count, named := 1, ""
		if last := parts[len(parts)-1]; len(parts) > 1 {
			if v, e := strconv.Atoi(last); e == nil && v >= 0 && v <= maxDevices {
				count = v
			} else if len(parts) > 2 {
				return "", 0, fmt.Errorf("GRES %.80q: %q is no number in 0..%d", text, last, maxDevices)
			} else {
				named = last
			}
		}
		if len(parts) > 2 {
			named = parts[1]
		}
		if typ == "" {
			typ = named
		} else if named != "" && !slices.Contains(strings.Split(typ, "+"), named) {
			typ += "+" + named
		}
		n += count
	}
	return typ, n, nil
}

// oneType returns an error for GPUs of several types, as gres joins them.
func oneType(typ string) error {
	if strings.Contains(typ, "+") {
		return fmt.Errorf("GPUs of the types %s, want one type", strings.ReplaceAll(typ, "+", ", "))
	}
	return nil
}

// share matches what is used of a GPU that is shared, in a GRES such as "shard:a100:3(2/4,1/4,0/4)" or "mps:50(50/100)".
var share = regexp.MustCompile(`[(,]0*[1-9][0-9]*/`)

// shared returns the number of GPUs with shards or shares of MPS in use. Slurm gives such a GPU to no job as a whole.
func shared(text string) (n int) {
	for _, item := range splitOutside(text) {
		if strings.HasPrefix(item, "shard:") || strings.HasPrefix(item, "mps:") {
			n += len(share.FindAllString(item, -1))
		}
	}
	return n
}

const maxDevices = 1024 // of a node, or of a job on it

// splitOutside splits at commas outside of parentheses.
func splitOutside(text string) []string {
	depth := 0
	return strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return r == ',' && depth == 0
	})
}

// hosts expands a list of nodes such as "n[1-3,07],m1".
func hosts(text string) ([]string, error) {
	var out []string
	for text != "" {
		open := strings.IndexAny(text, "[,")
		if open < 0 || text[open] == ',' {
			name, rest, _ := strings.Cut(text, ",")
			if name != "" {
				out = append(out, name)
			}
			text = rest
			continue
		}
		end := strings.IndexByte(text, ']')
		if end < open {
			return nil, fmt.Errorf("nodes %.80q: [ without ]", text)
		}
		head, tail, _ := strings.Cut(text[end+1:], ",")
		names, err := expand(text[:open], text[open+1:end], head)
		if err != nil {
			return nil, err
		}
		if out = append(out, names...); len(out) > maxHosts {
			return nil, fmt.Errorf("more than %d nodes", maxHosts)
		}
		text = tail
	}
	return out, nil
}

const maxHosts = 100_000

// expand expands the ranges between the brackets of a list of nodes.
func expand(head, ranges, tail string) (out []string, err error) {
	if strings.Contains(tail, "[") {
		return nil, fmt.Errorf("nodes %.80q: more than one range", head+"["+ranges+"]"+tail)
	}
	for _, r := range strings.Split(ranges, ",") {
		first, last, isRange := strings.Cut(r, "-")
		if !isRange {
			last = first
		}
		a, e1 := strconv.Atoi(first)
		b, e2 := strconv.Atoi(last)
		if e1 != nil || e2 != nil || a < 0 || b < a || b-a > maxHosts {
			return nil, fmt.Errorf("nodes %.80q: %.40q is no range of numbers", head+"["+ranges+"]", r)
		}
		for i := a; i <= b; i++ {
			out = append(out, fmt.Sprintf("%s%0*d%s", head, len(first), i, tail))
		}
	}
	return out, nil
}
