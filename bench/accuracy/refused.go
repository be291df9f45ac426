package accuracy

import (
	"fmt"
	"strconv"
	"strings"
)

// refusedFor is a reason and the rows refused for it.
type refusedFor struct {
	why  string
	rows []string
}

// byReason groups refusals by reason, both in order of appearance.
func byReason(all []Refusal) []refusedFor {
	var out []refusedFor
	at := map[string]int{}
	for _, r := range all {
		i, ok := at[r.Why]
		if !ok {
			i = len(out)
			at[r.Why] = i
			out = append(out, refusedFor{why: r.Why})
		}
		out[i].rows = append(out[i].rows, r.Row)
	}
	return out
}

// String writes "12 rows (litgpt-0001 to litgpt-0012): WHY".
func (r refusedFor) String() string {
	rows := "rows"
	if len(r.rows) == 1 {
		rows = "row"
	}
	return fmt.Sprintf("%d %s (%s): %s", len(r.rows), rows, strings.Join(runs(r.rows), ", "), r.why)
}

// runs shortens consecutive names: a-01, a-02, a-03 becomes "a-01 to a-03".
func runs(names []string) []string {
	var out []string
	for i := 0; i < len(names); {
		j := i
		for j+1 < len(names) && follows(names[j], names[j+1]) {
			j++
		}
		switch j - i {
		case 0:
			out = append(out, names[i])
		case 1:
			out = append(out, names[i], names[j])
		default:
			out = append(out, names[i]+" to "+last(names[j]))
		}
		i = j + 1
	}
	return out
}

// follows reports whether b is a with its final number one higher.
func follows(a, b string) bool {
	na, nb := number(a), number(b)
	if a[:len(a)-len(na)] != b[:len(b)-len(nb)] {
		return false
	}
	x, errA := strconv.Atoi(na)
	y, errB := strconv.Atoi(nb)
	return errA == nil && errB == nil && y == x+1
}

// number returns the digits at the end of a name.
func number(s string) string {
	return s[len(strings.TrimRight(s, "0123456789")):]
}

// last returns NAME of "PART: NAME".
func last(s string) string {
	if _, name, ok := strings.Cut(s, ": "); ok {
		return name
	}
	return s
}
