package family

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// families is filled by the init functions of this package's files.
var families = map[string]perfmodel.Family{}

// register adds f. It panics on a family without a name and on a name taken:
// both are mistakes in this package.
func register(f perfmodel.Family) {
	if f.Name == "" {
		panic("family: registering a family without a name")
	}
	if _, taken := families[f.Name]; taken {
		panic("family: " + f.Name + " is registered twice")
	}
	families[f.Name] = f
}

// All returns every family, by name.
func All() []perfmodel.Family {
	out := make([]perfmodel.Family, 0, len(families))
	for _, f := range families {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b perfmodel.Family) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Names returns the name of every family, sorted.
func Names() []string {
	var out []string
	for _, f := range All() {
		out = append(out, f.Name)
	}
	return out
}

// Lookup returns the family called name. The error for an unknown one lists
// the names there are, nearest first.
func Lookup(name string) (perfmodel.Family, error) {
	if f, ok := families[name]; ok {
		return f, nil
	}
	return perfmodel.Family{}, fmt.Errorf("family: no performance model %q, have %s", name, strings.Join(nearest(name, Names()), ", "))
}

// maxDegree bounds the degrees and counts of a plan, and its devices, so that
// products stay in an int and layouts in memory.
const maxDegree = 1 << 20

// checkDegrees returns an error wrapping perfmodel.ErrNotCovered for a normal
// plan that no machine runs: a degree or count below 1 or above maxDegree, or
// more devices than that.
func checkDegrees(p *spec.Plan) error {
	low := min(p.DP, p.TP, p.PP, p.CP, p.EP, p.VirtualStages, p.MicroBatch, p.AccumSteps)
	high := max(p.DP, p.TP, p.PP, p.CP, p.EP, p.VirtualStages, p.MicroBatch, p.AccumSteps)
	if low < 1 || high > maxDegree || float64(p.DP)*float64(p.TP)*float64(p.PP)*float64(p.CP) > maxDegree {
		return fmt.Errorf("plan %s has a degree or count below 1, or more than %d devices: %w", *p, maxDegree, perfmodel.ErrNotCovered)
	}
	return nil
}

// nearest returns names ordered by edit distance to want, ties by name.
func nearest(want string, names []string) []string {
	want = strings.ToLower(want)
	out := slices.Clone(names)
	slices.SortStableFunc(out, func(a, b string) int {
		return editDistance(want, strings.ToLower(a)) - editDistance(want, strings.ToLower(b))
	})
	return out
}

// editDistance returns the insertions, deletions and substitutions that turn a
// into b (Levenshtein 1966), in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, diag+1, row[j]+1)
		}
	}
	return row[len(b)]
}
