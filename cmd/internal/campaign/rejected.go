package campaign

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

// RejectedGroup is the combinations of a space that cannot be run for one reason. Models and
// numbers are left out of the reason: numbers that differ are written N.
type RejectedGroup struct {
	Why     string `json:"why"`
	Count   int    `json:"count"`
	Example string `json:"example"`
	// Unused is the value of the space that no point has for this reason, such as "tp=8"; "" if
	// only combinations of it are impossible.
	Unused string `json:"asked,omitempty"`
}

// GroupRejected groups rejections by reason, first those that leave a value of the space
// without any point, then by falling count.
func GroupRejected(rejected []profiler.Rejected) []RejectedGroup {
	type id struct{ unused, kind string }
	index := map[id]int{}
	groups, reasons := []RejectedGroup{}, []reason{}
	for _, r := range rejected {
		found := newReason(strings.TrimPrefix(r.Why, r.Config.Model.Name+": "))
		k := id{r.UnusedValue, found.words}
		i, ok := index[k]
		if !ok {
			i = len(groups)
			index[k] = i
			groups = append(groups, RejectedGroup{Unused: r.UnusedValue, Example: PointName(r.Config)})
			reasons = append(reasons, found)
		}
		groups[i].Count++
		reasons[i].merge(found)
	}
	for i := range groups {
		groups[i].Why = reasons[i].String()
	}
	slices.SortStableFunc(groups, func(a, b RejectedGroup) int {
		return cmp.Or(boolFirst(a.Unused != "", b.Unused != ""), b.Count-a.Count)
	})
	return groups
}

// reason is a text split into words, with a mark for each number, and the numbers.
type reason struct {
	words   string
	numbers []string
}

var digits = regexp.MustCompile(`\d+(\.\d+)?`)

const numberMark = "\x00"

func newReason(text string) reason {
	return reason{digits.ReplaceAllString(text, numberMark), digits.FindAllString(text, -1)}
}

// merge keeps the numbers that r shares with a reason of the same words.
func (r reason) merge(o reason) {
	for i, n := range o.numbers {
		if r.numbers[i] != n {
			r.numbers[i] = "N"
		}
	}
}

func (r reason) String() string {
	text := r.words
	for _, n := range r.numbers {
		text = strings.Replace(text, numberMark, n, 1)
	}
	return text
}

func boolFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// MaxReasons bounds the reasons listed before a run; profile plan lists all.
const MaxReasons = 12

// PrintRejected lists what cannot be run, at most so many reasons.
func PrintRejected(w io.Writer, rejected []profiler.Rejected, most int) {
	groups := GroupRejected(rejected)
	if len(groups) == 0 {
		return
	}
	fmt.Fprintf(w, "%s cannot be run:\n", spec.Count(len(rejected), "combination"))
	for i, g := range groups {
		if i == most {
			fmt.Fprintf(w, "  and %s more, see pacer profile plan\n", spec.Count(len(groups)-most, "reason"))
			return
		}
		prefix := ""
		if g.Unused != "" {
			prefix = "no point has " + g.Unused + ": "
		}
		fmt.Fprintf(w, "  %d: %s%s (such as %s)\n", g.Count, prefix, g.Why, g.Example)
	}
}
