package order

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// bestCost is the definition of the Gittins index, quantum by quantum.
func bestCost(values []float64, a float64) float64 {
	best := math.Inf(1)
	for _, end := range values {
		if end <= a {
			continue
		}
		done, spent := 0, 0.0
		for _, s := range values {
			if s > a {
				spent += min(s, end) - a
				if s <= end {
					done++
				}
			}
		}
		best = min(best, spent/float64(done))
	}
	return best
}

// The index computed from the hull equals the index by definition, at every age.
func TestGittinsIsTheBestOverAllQuanta(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Map(rapid.IntRange(1, 40), func(i int) float64 { return float64(i*i) / 3 }), 1, 40).Draw(t, "services")
		s := newServices(slices.Clone(values))
		for _, a := range append(slices.Clone(values), 0, 0.1, 17.3, 600) {
			got, want := s.cost(a), bestCost(values, a)
			if math.IsInf(want, 1) != math.IsInf(got, 1) || math.Abs(got-want) > 1e-9*want {
				t.Fatalf("services %v, attained %g: %g device-s per completion, by definition %g", values, a, got, want)
			}
		}
	})
}

// Worked by hand for services 1, 1 and 10: a quantum of 1 completes two jobs at a cost of
// (1+1+1)/2. The third then needs 9 more, and less with every second it ran.
func TestGittinsKnownAnswers(t *testing.T) {
	s := newServices([]float64{10, 1, 1})
	for _, c := range []struct{ attained, cost float64 }{{0, 1.5}, {0.5, 0.75}, {1, 9}, {4, 6}, {9.5, 0.5}} {
		if got := s.cost(c.attained); math.Abs(got-c.cost) > 1e-12 {
			t.Errorf("attained %g: cost %g, want %g", c.attained, got, c.cost)
		}
	}
	if got := s.cost(10); !math.IsInf(got, 1) {
		t.Errorf("no job lasted longer than 10, cost %g", got)
	}
	if got := (&services{}).cost(0); !math.IsInf(got, 1) {
		t.Errorf("empty history, cost %g", got)
	}
}

func TestReadHistory(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"trace":      {"job_id,gpus,duration_s\na,2,30\nb,1,7.5\n", "[60 7.5]"},
		"jobs-out":   {"policy,job_id,submit_s,start_s,end_s,jct_s,restarts,device_s\nlas,1,0,0,9,9,0,18\nlas,2,0,,,,0,0\n", "[18]"},
		"byte order": {"\ufeffdevice_s\n3\n", "[3]"},
		"no column":  {"job_id,gpus\na,2\n", ":1: columns job_id,gpus, want device_s, or gpus and duration_s"},
		"text":       {"gpus,duration_s\n2,30\n2,soon\n", `:3:3: duration_s "soon" is not a number above 0`},
		"negative":   {"device_s\n-4\n", `:2:1: device_s "-4" is not a number above 0`},
		"infinite":   {"device_s\nInf\n", `:2:1: device_s "Inf" is not a number above 0`},
		"ragged":     {"device_s,a\n1,2\n3\n", "record on line 3: wrong number of fields"},
		"empty":      {"", "want device_s"},
		"Parquet":    {"PAR1\x15\x04", "is Parquet, want CSV"},
		"no job":     {"device_s\n", "has no finished job"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "history.csv")
			spectest.WriteFile(t, path, []byte(c.text), 0o600)
			got, err := readHistory(path)
			if err != nil {
				if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
					t.Errorf("error %v, want %s", err, c.want)
				}
				return
			}
			if fmt.Sprint(got) != c.want {
				t.Errorf("read %v, want %s", got, c.want)
			}
		})
	}
	if _, err := readHistory("nowhere.csv"); err == nil || !strings.Contains(err.Error(), "nowhere.csv: no such file") {
		t.Errorf("error %v", err)
	}
}
