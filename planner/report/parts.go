package report

import (
	"math"
	"strconv"

	"github.com/pacer-ml/pacer/perfmodel/memory"
)

// bar is a whole and its parts, side by side.
type bar struct {
	Title string
	Total string // with its unit
	Unit  string
	Parts []barPart
	Note  string
}

type barPart struct {
	What        string
	Size, Share string
	Width       string // of the bar, percent
	Color       int    // 1-based
	Striped     bool   // the colour is that of an earlier part
}

// partColors is the number of colours p1, p2, ... the style sheet has for parts.
const partColors = 8

// leastPart is the share of the whole below which a part is left out.
const leastPart = 1e-4

// newBars returns the parts of time and memory of the best plan.
func newBars(in *Input) []bar {
	var out []bar
	if b, ok := newBar(in.Time, 1, 0); ok {
		b.Title, b.Unit = "One step", "s"
		b.Total = sig(total(in.Time), 3) + " s"
		out = append(out, b)
	}
	if b, ok := newBar(in.Memory, 1.0/memory.GiB, in.Request.Accelerator.MemBytes); ok {
		b.Title, b.Unit = "Memory of the fullest device", "GiB"
		b.Total = sig(total(in.Memory)/memory.GiB, 3) + " GiB"
		if device := in.Request.Accelerator.MemBytes; device > 0 {
			b.Total += " of " + trim(device/memory.GiB) + " GiB"
			b.Note = "The blank end of the bar is free memory."
		}
		if in.HostBytes > 0 {
			b.Note += " The plan also needs " + sig(in.HostBytes/memory.GiB, 3) + " GiB of host memory per device."
		}
		out = append(out, b)
	}
	return out
}

// newBar lays parts out over a bar of width whole, or of their sum if that is
// larger. Sizes are multiplied by scale. ok is false without parts.
func newBar(parts []Part, scale, whole float64) (b bar, ok bool) {
	sum := total(parts)
	if !(sum > 0) || math.IsInf(sum, 0) {
		return b, false
	}
	whole = max(whole, sum)
	for _, p := range parts {
		if !(p.Size >= sum*leastPart) {
			continue
		}
		n := len(b.Parts)
		b.Parts = append(b.Parts, barPart{
			What: p.What, Size: sig(p.Size*scale, 3), Share: percent(p.Size / sum),
			Width: strconv.FormatFloat(100*p.Size/whole, 'f', 3, 64),
			Color: n%partColors + 1, Striped: n >= partColors,
		})
	}
	return b, true
}

func total(parts []Part) float64 {
	sum := 0.0
	for _, p := range parts {
		sum += p.Size
	}
	return sum
}
