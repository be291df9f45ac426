package plan

import (
	"io"
	"regexp"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/number"
)

// words are the parts of a plan's text form, with what they say.
var words = []struct{ name, says string }{
	{"dp", "replicas that train on other samples (data parallelism)"},
	{"tp", "devices that split each layer (tensor parallelism)"},
	{"pp", "stages of layers (pipeline parallelism)"},
	{"cp", "devices that split each sequence (context parallelism)"},
	{"ep", "devices that split the experts"},
	{"vp", "parts of a stage that take turns (virtual stages)"},
	{"mb", "samples of a micro-batch"},
	{"ga", "micro-batches of a step (gradient accumulation)"},
	{"zero", "ZeRO stage: replicas share optimizer states (1), gradients too (2), weights too (3)"},
	{"shard", "replicas that share states, and the others have copies"},
	{"offload", "what is kept in host memory"},
	{"recompute", "activations that are computed again instead of kept"},
	{"sp", "sequence parallelism within tensor parallelism"},
	{"schedule", "order of the micro-batches in a pipeline"},
}

// wordOf matches a part of a plan, but not one that has no effect.
var wordOf = regexp.MustCompile(`\b([a-z]+)=(\w[\w-]*)`)

// PrintLegend explains the words of plans that say more than the usual 1.
func PrintLegend(w io.Writer, plans ...string) {
	used := map[string]bool{}
	for _, plan := range plans {
		for _, m := range wordOf.FindAllStringSubmatch(plan, -1) {
			used[m[1]] = used[m[1]] || m[2] != "1" || m[1] == "zero" || m[1] == "sp" || m[1] == "mb" || m[1] == "ga"
		}
	}
	var parts []string
	for _, word := range words {
		if used[word.name] {
			parts = append(parts, word.name+": "+word.says)
		}
	}
	if len(parts) > 0 {
		console.Wrap(w, strings.Join(parts, "; ")+".")
	}
}

// timeUnit is a unit in which a table of times is easy to read.
type timeUnit struct {
	name   string
	perDay float64
}

// unitOf returns the unit for times of at least so many days: minutes, hours or days.
func unitOf(least float64) timeUnit {
	switch {
	case least < 1./24:
		return timeUnit{"minutes", 24 * 60}
	case least < 1:
		return timeUnit{"hours", 24}
	}
	return timeUnit{"days", 1}
}

// of writes a time of so many days in the unit, without its name.
func (u timeUnit) of(days float64) string { return number.Significant(days*u.perDay, 3) }

// daysText writes a time with the unit that suits it.
func daysText(days float64) string {
	u := unitOf(days)
	return u.of(days) + " " + u.name
}
