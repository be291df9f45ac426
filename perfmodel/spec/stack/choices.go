package stack

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// perUse is the largest number of stacks of one use. MaxChoices is that of one Choices, over all uses.
const (
	perUse     = 4
	MaxChoices = perUse * int(Uses)
)

// Use is a kind of plan that decides which stacks are plausible.
type Use int

// Kinds of plans.
const (
	Replicated Use = iota // data parallel, ZeRO 0 to 2
	Sharded               // ZeRO 3
	Split                 // tensor, pipeline, context or expert parallel
	low                   // added: multiplications in 8 bits or fewer
	Uses       Use = 2 * low
)

// UseOf returns the use of a normal plan.
func UseOf(p *spec.Plan) Use {
	use := Replicated
	switch {
	case p.TP*p.PP*p.CP*p.EP > 1:
		use = Split
	case p.ZeRO == 3:
		use = Sharded
	}
	if p.Precision.Format() == spec.FP8 || p.Precision == spec.FP4 {
		use += low
	}
	return use
}

// Choices are the stacks that a text may mean, with the probability of each by use. It is immutable.
type Choices struct {
	Name   string // of the stated stack, "" = not stated
	N      int
	Stacks [MaxChoices]*Stack
	Weight [Uses][MaxChoices]float64 // sums to 1 in each use
}

// Stated reports whether there is only one choice.
func (c *Choices) Stated() bool { return c.N == 1 }

type question struct{ text, arch string }

var (
	answers sync.Map // question to *Choices
	kept    atomic.Uint64
)

// Of returns the choices of a text on an architecture of devices. What Parse cannot read of a text counts as not
// stated.
func Of(text, arch string) *Choices {
	q := question{text, arch}
	if c, ok := answers.Load(q); ok {
		return c.(*Choices)
	}
	c, known := answers.LoadOrStore(q, choose(text, arch))
	if !known && kept.Add(1)%maxAnswers == 0 {
		answers.Clear() // texts come from users: they must not fill the memory
	}
	return c.(*Choices)
}

// maxAnswers is the number of answers that are kept.
const maxAnswers = 4096

// least is the smallest probability of a stack under a use: others are left out.
const least = 0.1

func choose(text, arch string) *Choices {
	s, _ := Parse(text)
	if of, ok := s.at(); ok {
		c := &Choices{Name: s.Name}
		for use := range c.Weight {
			c.add(Use(use), s.changed(of), 1)
		}
		return c
	}
	c := &Choices{Name: s.Name}
	for use := range c.Weight {
		s.open(c, Use(use), arch)
	}
	if c.N == 1 && s.line >= 0 {
		c.Name = c.Stacks[0].Name
	}
	return c
}

// add adds to the weight of a stack. Stacks that differ in no part count as one.
func (c *Choices) add(use Use, of *Stack, weight float64) {
	i := slices.IndexFunc(c.Stacks[:c.N], func(s *Stack) bool { return s.Parts == of.Parts && s.Reports == of.Reports })
	if i < 0 {
		i = c.N
		c.Stacks[i] = of
		c.N++
	}
	c.Weight[use][i] += weight
}

// changed returns of with the stated parts.
func (s *Stated) changed(of *Stack) *Stack {
	if len(s.parts) == 0 {
		return of
	}
	out := *of
	for _, part := range s.parts {
		kind, value, _ := strings.Cut(part, "=")
		_ = out.Parts.set(kind, value) // Parse has checked it
	}
	return &out
}

// candidates returns the lines that s may mean under a use. An unknown name may be any of them: FSDP and DeepSpeed
// shard ZeRO 3 states, only Megatron and its derivatives and torchtitan split models, and neither DeepSpeed nor
// PyTorch's own data parallelism multiplies in 8 bits.
func (s *Stated) candidates(use Use) []string {
	if s.line >= 0 {
		return []string{s.Name}
	}
	return plausible[use]
}

var plausible = [Uses][]string{
	Replicated:       {"Megatron-LM", "NeMo Megatron", "PyTorch", "DeepSpeed"},
	Sharded:          {"FSDP", "DeepSpeed"},
	Split:            {"Megatron-LM", "NeMo Megatron", "Megatron-DeepSpeed", "torchtitan"},
	low + Replicated: {"Megatron-LM", "NeMo Megatron"},
	low + Sharded:    {"FSDP", "torchtitan"},
	low + Split:      {"Megatron-LM", "NeMo Megatron", "torchtitan"},
}

// open adds the stacks that s leaves open under a use. In each month in which devices of the architecture were in
// use, all candidates are equally likely, each in its release of that month; earlier months count less, see recency.
func (s *Stated) open(c *Choices, use Use, arch string) {
	from, to := inUse(arch)
	if s.until != "" {
		to = min(to, months(s.until))
	}
	weight := map[kindred]*share{}
	for month := min(from, to); month <= to; month++ {
		var current []*Stack
		for _, name := range s.candidates(use) {
			if of := currentAt(lineOf(name), month); of != nil {
				current = append(current, of)
			}
		}
		for _, of := range current {
			k := kindredOf(of)
			if weight[k] == nil {
				weight[k] = &share{of: of}
			}
			weight[k].of = of // the newest
			weight[k].weight += math.Exp((month-to)/recency) / float64(len(current))
		}
	}
	if len(weight) == 0 { // devices from before the first release, or from after the end of development
		line := lineOf(s.candidates(use)[0])
		of := cmp.Or(releaseAt(line, to), &all[line][0])
		weight[kindredOf(of)] = &share{of, 1}
	}
	s.keep(c, use, slices.SortedFunc(maps.Values(weight), func(a, b *share) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), strings.Compare(a.of.Name, b.of.Name), strings.Compare(a.of.Date, b.of.Date))
	}))
}

type share struct {
	of     *Stack
	weight float64
}

// keep adds the most likely stacks of a sorted list.
func (s *Stated) keep(c *Choices, use Use, list []*share) {
	sum := func(list []*share) (total float64) {
		for _, l := range list {
			total += l.weight
		}
		return total
	}
	total := sum(list)
	n := 1
	for n < min(len(list), perUse) && list[n].weight >= least*total {
		n++
	}
	total = sum(list[:n])
	for _, l := range list[:n] {
		c.add(use, s.changed(l.of), l.weight/total)
	}
}

// kindred identifies releases of a line that count as one choice: the loss, kinds of flash attention and tensor parallel
// traffic on another stream hardly change the step time.
type kindred struct {
	name  string
	parts Parts
}

func kindredOf(of *Stack) kindred {
	k := kindred{of.Name, of.Parts}
	k.parts.Loss = ""
	if k.parts.TP == Async {
		k.parts.TP = None
	}
	if k.parts.Attention == Flash3 || k.parts.Attention == CuDNN {
		k.parts.Attention = Flash
	}
	return k
}

// currentAt returns the current release of a line, or of the line that it became, in a month; nil before the first, and
// after the end of development.
func currentAt(line int, month float64) *Stack {
	if end := lines[line].end; end != "" && month > months(end) {
		return nil
	}
	return releaseAt(line, month)
}

// releaseAt returns the last release of a line, or of the line that it became, until a month; nil before the first.
func releaseAt(line int, month float64) (of *Stack) {
	for line >= 0 {
		for i := range all[line] {
			if r := &all[line][i]; months(r.Date) <= month {
				of = r
			}
		}
		line = lineOf(lines[line].after)
	}
	return of
}

// recency is the number of months over which the probability of a release falls to 1/e: documents and questions are
// about recent runs, mostly. A round number; the errors of unnamed published rows are the same from 18 to 36.
const recency = 18

// newest is the date up to which the table is complete.
const newest = "2026-09"

// years is the time for which devices are bought and measured after their launch.
const years = 5

// inUse returns the first and the last month in which an architecture was in use.
func inUse(arch string) (from, to float64) {
	launch, ok := launches[arch]
	if !ok {
		launch = "2020-05"
	}
	return months(launch), min(months(launch)+12*years, months(newest))
}

// launches are the months in which the first data center devices of an architecture were sold.
var launches = map[string]string{
	"Kepler": "2012-11", "Maxwell": "2015-11", "Pascal": "2016-06", "Volta": "2017-09", "Turing": "2018-09", "Ampere": "2020-05", "Ada": "2022-10",
	"Hopper": "2022-10", "Blackwell": "2024-12", "Blackwell Ultra": "2025-08", "CDNA2": "2021-11", "CDNA3": "2023-12", "CDNA4": "2025-06",
}

// months returns a date YYYY-MM in months.
func months(date string) float64 {
	year, _ := strconv.Atoi(date[:4])
	month, _ := strconv.Atoi(date[5:])
	return float64(12*year + month)
}
