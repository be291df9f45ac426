//go:build opqexp

package family

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

type zzPoint struct {
	key  [3]int
	rows []spec.Measurement
	mean float64
}

var zzModels = []string{"bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"}
var zzSuf = []string{"aws", "rtx", "dgx-ext", "azure", "quad"}

func zzLoad(t *testing.T) map[[2]string][]zzPoint {
	imp, _ := datasets.Lookup("sia")
	m := map[[2]string]map[[3]int]*zzPoint{}
	for r, err := range imp.Import(context.Background(), os.DirFS(spectest.Shared(t)+"/data/sia")) {
		if err != nil {
			continue
		}
		c := [2]string{r.Config.Model.Name, r.Source[4:]}
		if c[1] == "dgx" {
			continue
		}
		if m[c] == nil {
			m[c] = map[[3]int]*zzPoint{}
		}
		k := [3]int{r.Config.Shape.Nodes(), r.Config.Plan.DP, r.Config.Plan.MicroBatch}
		if m[c][k] == nil {
			m[c][k] = &zzPoint{key: k}
		}
		m[c][k].rows = append(m[c][k].rows, r)
	}
	out := map[[2]string][]zzPoint{}
	for c, ps := range m {
		for _, p := range ps {
			for _, r := range p.rows {
				p.mean += r.StepSec[0] / float64(len(p.rows))
			}
			out[c] = append(out[c], *p)
		}
		sort.Slice(out[c], func(i, j int) bool {
			return slices.Compare(out[c][i].key[:], out[c][j].key[:]) < 0
		})
	}
	return out
}

func zzRows(ps []zzPoint) (out []spec.Measurement) {
	for _, p := range ps {
		out = append(out, p.rows...)
	}
	return
}

func zzApe(f *opaqueFitted, p zzPoint) (float64, float64) {
	s, z := 0.0, 0.0
	for _, r := range p.rows {
		_, x := opaqueFormOf(&r.Config)
		y, sd := f.predict(&x)
		s += math.Exp(y) / float64(len(p.rows))
		z += sd / float64(len(p.rows))
	}
	return math.Abs(s/p.mean - 1), math.Abs(math.Log(s/p.mean)) / z
}

func TestZZ(t *testing.T) {
	all := zzLoad(t)
	var cells [][2]string
	for _, m := range zzModels {
		for _, s := range zzSuf {
			cells = append(cells, [2]string{m, s})
		}
	}
	start := time.Now()
	var rows []spec.Measurement
	for _, c := range cells {
		rows = append(rows, zzRows(all[c])...)
	}
	full, err := trainOpaque(rows)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("train", time.Since(start))
	if os.Getenv("ZZP") != "" {
		for _, c := range full.AllReduce {
			fmt.Printf("%-12s %-22s", c.Model, c.Site)
			for i := range c.Mean {
				fmt.Printf(" %s %.2g", allReduceForm.params[i].name, math.Exp(c.Mean[i]))
			}
			fmt.Println()
		}
	}
	without := func(c [2]string, model bool) *opaquePrior {
		like := all[c][0].rows[0].Config
		p := &opaquePrior{}
		for _, k := range full.AllReduce {
			if k.Model == c[0] && (model || k.Site == opaqueSite(&like)) {
				continue
			}
			p.AllReduce = append(p.AllReduce, k)
		}
		return p
	}
	protos := []func(ps []zzPoint) [][2][]zzPoint{
		func(ps []zzPoint) (out [][2][]zzPoint) {
			perm := rand.New(rand.NewPCG(1, 1)).Perm(len(ps))
			for k := range 5 {
				var s [2][]zzPoint
				for i, j := range perm {
					if i%5 == k {
						s[1] = append(s[1], ps[j])
					} else {
						s[0] = append(s[0], ps[j])
					}
				}
				out = append(out, s)
			}
			return
		},
		func(ps []zzPoint) [][2][]zzPoint {
			var s [2][]zzPoint
			for _, p := range ps {
				if p.key[1] <= 4 {
					s[0] = append(s[0], p)
				} else {
					s[1] = append(s[1], p)
				}
			}
			return [][2][]zzPoint{s}
		},
		func(ps []zzPoint) [][2][]zzPoint {
			var s [2][]zzPoint
			two := false
			for _, p := range ps {
				switch {
				case p.key[1] == 1:
					s[0] = append(s[0], p)
				case p.key[0] == 1 && p.key[1] == 2 && !two:
					two = true
					s[0] = append(s[0], p)
				case p.key[1] > 2:
					s[1] = append(s[1], p)
				}
			}
			return [][2][]zzPoint{s}
		},
	}
	start = time.Now()
	for pi, proto := range protos {
		if os.Getenv("ZZ") == "" && pi == 0 {
			continue
		}
		if e := os.Getenv("ZZ"); e != "" && e != fmt.Sprint(pi+1) {
			continue
		}
		for _, noModel := range []bool{false, true} {
			if noModel && os.Getenv("ZZN") == "" {
				continue
			}
			var means []float64
			line := ""
			in, tot := 0, 0
			for _, c := range cells {
				var apes []float64
				prior := without(c, noModel)
				for _, s := range proto(all[c]) {
					if len(s[1]) == 0 {
						continue
					}
					f, err := prior.fit(zzRows(s[0]), all[c][0].rows[0].Config)
					if err != nil {
						t.Fatal(err)
					}
					if os.Getenv("ZZC") == c[0]+"/"+c[1] {
						for i, p := range f.form.params {
							fmt.Printf("%s prior %.3g (sd %.2f) mode %.3g; full-cell ", p.name, math.Exp(f.prior.Mean[i]), math.Sqrt(f.prior.Cov.At(i, i)), math.Exp(f.mode[i]))
							for _, k := range full.AllReduce {
								if k.Model == c[0] && k.Site == opaqueSite(&all[c][0].rows[0].Config) {
									fmt.Printf("%.3g\n", math.Exp(k.Mean[i]))
								}
							}
						}
						by := map[[2]int][]float64{}
						var ks [][2]int
						for _, p := range all[c] {
							k := [2]int{p.key[0], p.key[1]}
							if by[k] == nil {
								ks = append(ks, k)
							}
							_, x := opaqueFormOf(&p.rows[0].Config)
							y, _ := f.predict(&x)
							by[k] = append(by[k], y-math.Log(p.mean))
						}
						for _, k := range ks {
							a := by[k]
							fmt.Printf("%dn%d: %+.2f %+.2f %+.2f | ", k[0], k[1], a[0], a[len(a)/2], a[len(a)-1])
						}
						fmt.Println()
					}
					for _, p := range s[1] {
						a, z := zzApe(f, p)
						apes = append(apes, a)
						if z < 1.645 {
							in++
						}
						tot++
					}
				}
				if len(apes) == 0 {
					continue
				}
				m := 0.0
				for _, a := range apes {
					m += a / float64(len(apes))
				}
				means = append(means, m)
				line += fmt.Sprintf(" %s/%s %.1f", c[0][:3], c[1], 100*m)
			}
			m := 0.0
			for _, a := range means {
				m += a / float64(len(means))
			}
			fmt.Println(line)
			slices.Sort(means)
			fmt.Printf("protocol %d noModel=%v: %d cells mean %.2f median %.2f cover %.2f  %v\n", pi+1, noModel, len(means), 100*m, 100*means[len(means)/2], float64(in)/float64(tot), time.Since(start).Round(time.Millisecond))
		}
	}
}
