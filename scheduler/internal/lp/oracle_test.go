//go:build clp

package lp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// writeMPS writes p, as a minimisation, in free MPS. With binary all
// variables are 0 or 1.
func (p *Problem) writeMPS(t *testing.T, path string, binary bool) {
	t.Helper()
	f := p.compile()
	var b strings.Builder
	b.WriteString("NAME p FREE\nROWS\n N cost\n")
	kind := func(lower, upper float64) string {
		switch {
		case lower == upper:
			return "E"
		case math.IsInf(lower, -1) && math.IsInf(upper, 1):
			return "N"
		case math.IsInf(lower, -1):
			return "L"
		}
		return "G"
	}
	for i := range f.lr {
		fmt.Fprintf(&b, " %s r%d\n", kind(f.lr[i], f.ur[i]), i)
	}
	b.WriteString("COLUMNS\n")
	for j := range f.c {
		if binary {
			fmt.Fprintf(&b, " m%d 'MARKER' 'INTORG'\n", j)
		}
		fmt.Fprintf(&b, " x%d cost %.17g\n", j, f.c[j])
		for k := f.a.Ptr[j]; k < f.a.Ptr[j+1]; k++ {
			fmt.Fprintf(&b, " x%d r%d %.17g\n", j, f.a.Idx[k], f.a.Val[k])
		}
		if binary {
			fmt.Fprintf(&b, " n%d 'MARKER' 'INTEND'\n", j)
		}
	}
	b.WriteString("RHS\n")
	var ranges strings.Builder
	for i := range f.lr {
		switch lower, upper := f.lr[i], f.ur[i]; kind(lower, upper) {
		case "E", "L":
			fmt.Fprintf(&b, " rhs r%d %.17g\n", i, upper)
		case "G":
			fmt.Fprintf(&b, " rhs r%d %.17g\n", i, lower)
			if !math.IsInf(upper, 1) {
				fmt.Fprintf(&ranges, " rng r%d %.17g\n", i, upper-lower)
			}
		}
	}
	if ranges.Len() > 0 {
		b.WriteString("RANGES\n" + ranges.String())
	}
	b.WriteString("BOUNDS\n")
	for j := range f.c {
		lower, upper := f.l[j], f.u[j]
		switch {
		case math.IsInf(lower, -1) && math.IsInf(upper, 1):
			fmt.Fprintf(&b, " FR bnd x%d\n", j)
			continue
		case math.IsInf(lower, -1):
			fmt.Fprintf(&b, " MI bnd x%d\n", j)
		default:
			fmt.Fprintf(&b, " LO bnd x%d %.17g\n", j, lower)
		}
		if !math.IsInf(upper, 1) {
			fmt.Fprintf(&b, " UP bnd x%d %.17g\n", j, upper)
		}
	}
	b.WriteString("ENDATA\n")
	spectest.WriteFile(t, path, []byte(b.String()), 0o600)
}

// oracle solves p with CLP, or GLPK if that is not there, and returns the objective in p's sense.
func oracle(t *testing.T, p *Problem, binary bool) (float64, error) {
	t.Helper()
	dir := t.TempDir()
	mps, out := filepath.Join(dir, "p.mps"), filepath.Join(dir, "out")
	p.writeMPS(t, mps, binary)
	var cmd *exec.Cmd
	if path, err := exec.LookPath("clp"); err == nil && !binary {
		cmd = exec.Command(path, mps, "-primalTolerance", "1e-9", "-dualTolerance", "1e-9", "-primalSimplex", "-solution", out)
	} else if path, err := exec.LookPath("glpsol"); err == nil {
		cmd = exec.Command(path, "--freemps", mps, "-o", out)
	} else {
		spectest.Lacks(t, "neither clp nor glpsol is installed: apt-get install coinor-clp glpk-utils")
	}
	if log, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, log)
	}
	v, err := readObjective(t, out)
	return p.sign() * v, err
}

// readObjective reads the objective from a solution that CLP or GLPK wrote.
func readObjective(t *testing.T, path string) (float64, error) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.ToLower(lines.Text())
		switch {
		case strings.Contains(line, "infeasible") && !strings.Contains(line, "dual infeasible"):
			return 0, ErrInfeasible
		case strings.Contains(line, "unbounded"), strings.Contains(line, "dual infeasible"):
			return 0, ErrUnbounded
		case strings.Contains(line, "objective"):
			for _, word := range strings.Fields(line) {
				if v, err := strconv.ParseFloat(word, 64); err == nil {
					return v, nil
				}
			}
		}
	}
	t.Fatalf("no objective in %s", path)
	return 0, nil
}

func TestSolveAgreesWithCLP(t *testing.T) {
	maxMin := func(jobs, types int) *Problem {
		p := invented(2, jobs, types).scaled().general()
		return p
	}
	problems := map[string]*Problem{
		"max-min 256x3":  maxMin(256, 3),
		"max-min 1024x8": maxMin(1024, 8),
		"transport 60":   transport(1, 60),
		"sparse 2000":    sparseProblem(1, 2000, 1000),
		"equations":      denseProblem(1, 120, 60, true),
		"few equations":  denseProblem(2, 300, 20, true),
		"dense":          denseProblem(3, 200, 150, false),
		"dense and tall": denseProblem(4, 60, 200, false),
	}
	for seed := range uint64(20) {
		problems[fmt.Sprint("sparse ", seed)] = sparseProblem(seed, 300, 150)
		problems[fmt.Sprint("badly scaled ", seed)] = spoil(sparseProblem(seed, 300, 150), seed)
		problems[fmt.Sprint("any ", seed)] = random(rand.New(rand.NewPCG(seed, 16)), 60, 30)
	}
	for name, p := range problems {
		t.Run(name, func(t *testing.T) {
			want, wantErr := oracle(t, p, false)
			got, err := p.Solve(context.Background(), Options{})
			if wantErr != nil || err != nil {
				if !errors.Is(err, wantErr) {
					t.Errorf("error %v, want %v", err, wantErr)
				}
				return
			}
			if math.Abs(got.Objective-want) > 1e-6*(1+math.Abs(want)) {
				t.Errorf("objective %v, want %v", got.Objective, want)
			}
		})
	}
}

func TestChoiceAgreesWithGLPK(t *testing.T) {
	for seed := range uint64(20) {
		c := randomChoice(rand.New(rand.NewPCG(seed, 17)), 25, 3, 5, seed%2 == 0)
		p := c.relaxation()
		want, err := oracle(t, p, true)
		if err != nil {
			t.Fatal(err)
		}
		got := mustChoose(t, c, ChoiceOptions{})
		if math.Abs(got.Value-want) > 1e-6 {
			t.Errorf("seed %d: value %v, want %v", seed, got.Value, want)
		}
	}
}

// denseProblem returns a problem in which every row has every variable: equations, or inequalities.
func denseProblem(seed uint64, n, m int, equations bool) *Problem {
	r := rand.New(rand.NewPCG(seed, 18))
	p := New(Maximize)
	for range n {
		p.Var("", 0, 10, r.NormFloat64())
	}
	for range m {
		terms := make([]Term, n)
		activity := 0.0
		for j := range terms {
			terms[j] = Term{Var(j), r.NormFloat64()}
			activity += terms[j].Coef
		}
		if equations {
			p.Equal("", activity, terms...) // of all ones
		} else {
			p.AtMost("", activity, terms...)
		}
	}
	return p
}
