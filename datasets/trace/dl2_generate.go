package trace

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// DL2Options configure GenerateDL2: types are drawn uniformly, each with the epochs of its type,
// and submitted at the beginning of slots.
type DL2Options struct {
	Seed      uint64
	Jobs      int
	PerSlot   int // most arrivals per slot
	MaxEpochs int // of the longest possible job
	Slot      time.Duration
	// Arrivals are "uniform", PerSlot in every slot; "poisson", drawn with that mean and capped at
	// it; or "google", a share of PerSlot between one half and all that varies from slot to slot,
	// as the load of clusters does.
	Arrivals string
}

// dl2Preset is a cluster and workload of DL2's simulations.
type dl2Preset struct {
	Name    string
	Nodes   int // of 2 GPUs and 8 CPUs
	Options DL2Options
}

// dl2Presets are those of its code, except for the epochs of "small", for which 48 nodes are
// neither idle nor overloaded.
func dl2Presets() []dl2Preset {
	preset := func(name string, nodes, jobs, perSlot, epochs int, slot time.Duration) dl2Preset {
		return dl2Preset{name, nodes, DL2Options{Jobs: jobs, PerSlot: perSlot, MaxEpochs: epochs, Slot: slot, Arrivals: "uniform"}}
	}
	return []dl2Preset{
		preset("testbed", 6, 10, 5, 1000, dl2TestbedSlot),
		preset("small", 48, 60, 3, 3000, dl2Slot),
		preset("large-1", 100, 120, 6, 30000, dl2Slot),
		preset("large-2", 100, 180, 9, 30000, dl2Slot),
		preset("large-3", 120, 180, 9, 30000, dl2Slot),
		preset("large-4", 500, 600, 30, 30000, dl2Slot),
	}
}

// dl2Arrivals are the values of DL2Options.Arrivals.
var dl2Arrivals = []string{"uniform", "poisson", "google"}

// ParseDL2Options parses PRESET[,key=value...] with the keys jobs, per-slot, epochs, slot-s and
// arrivals.
func ParseDL2Options(text string) (DL2Options, error) {
	items := strings.Split(text, ",")
	var o DL2Options
	var names []string
	for _, p := range dl2Presets() {
		if names = append(names, p.Name); p.Name == items[0] {
			o = p.Options
		}
	}
	if o.Jobs == 0 {
		return o, fmt.Errorf("datasets: no workload dl2=%s, there are: %s", items[0], strings.Join(named.Nearest(items[0], names, len(names)), ", "))
	}
	for _, item := range items[1:] {
		key, value, _ := strings.Cut(item, "=")
		if err := o.set(key, value); err != nil {
			return o, fmt.Errorf("datasets: dl2=%s: %s: %w", items[0], item, err)
		}
	}
	return o, o.Validate()
}

func (o *DL2Options) set(key, value string) error {
	sec := o.Slot.Seconds()
	to, ok := map[string]any{"jobs": &o.Jobs, "per-slot": &o.PerSlot, "epochs": &o.MaxEpochs, "arrivals": &o.Arrivals, "slot-s": &sec}[key]
	if !ok {
		return fmt.Errorf("want one of jobs, per-slot, epochs, slot-s, arrivals")
	}
	if err := named.Parse(value, to); err != nil {
		return err
	}
	if key == "slot-s" {
		o.Slot = time.Duration(sec * float64(time.Second))
	}
	return nil
}

// Validate returns an error for the first invalid option.
func (o *DL2Options) Validate() error {
	const most = 1 << 20
	switch {
	case o.Jobs < 1 || o.Jobs > most || o.PerSlot < 1 || o.PerSlot > most || o.MaxEpochs < 1 || o.MaxEpochs > table.MaxCount:
		return fmt.Errorf("datasets: dl2: %d jobs, %d per slot, of up to %d epochs: all must be at least 1", o.Jobs, o.PerSlot, o.MaxEpochs)
	case o.Slot < time.Second || o.Slot > 24*time.Hour:
		return fmt.Errorf("datasets: dl2: slots of %v, want 1s to 24h", o.Slot)
	}
	for _, a := range dl2Arrivals {
		if a == o.Arrivals {
			return nil
		}
	}
	return fmt.Errorf("datasets: dl2: arrivals %q, want one of %s", o.Arrivals, strings.Join(dl2Arrivals, ", "))
}

// GenerateDL2 returns jobs like those of DL2's simulator by submission, with IDs from
// "1". The same options give the same jobs; more jobs give the same first ones.
func GenerateDL2(o DL2Options) ([]spec.Job, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	types, arrive := stats.Stream(o.Seed, "dl2/types"), o.arrivals()
	jobs := make([]spec.Job, 0, o.Jobs)
	for slot := 0; len(jobs) < o.Jobs; slot++ {
		for range min(arrive(), o.Jobs-len(jobs)) {
			k := &dl2Types[types.IntN(len(dl2Types))]
			epochs := max(int(k.Length*float64(o.MaxEpochs)), 1)
			jobs = append(jobs, k.Job(strconv.Itoa(len(jobs)+1), time.Duration(slot)*o.Slot, epochs))
		}
	}
	return jobs, nil
}

// arrivals returns a function that returns the arrivals of the next slot.
func (o *DL2Options) arrivals() func() int {
	rng := stats.Stream(o.Seed, "dl2/arrivals")
	share := 0.5 + rng.Float64()/2
	return func() int {
		switch o.Arrivals {
		case "poisson":
			n := 0
			for t := rng.ExpFloat64(); t < float64(o.PerSlot) && n < o.PerSlot; t += rng.ExpFloat64() {
				n++
			}
			return n
		case "google":
			share = min(max(share+(rng.Float64()-0.5)/4, 0.5), 1)
			return int(math.Round(share * float64(o.PerSlot)))
		}
		return o.PerSlot
	}
}
