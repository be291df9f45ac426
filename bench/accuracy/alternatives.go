package accuracy

import "slices"

// Alternative is one measured plan of several that do the same work.
type Alternative struct {
	Row          string  `json:"row"` // where its measurement is from; the first of repeats
	Plan         string  `json:"plan"`
	Placement    string  `json:"placement"`  // devices on each node
	MeasuredSec  float64 `json:"measured_s"` // step time, the median of repeats
	PredictedSec float64 `json:"predicted_s"`
}

// Alternatives is one choice between measured plans of a model on the same number
// and type of devices, at one global batch, by one training stack.
type Alternatives struct {
	Dataset     string `json:"dataset"` // "rubick" or "published"
	Source      string `json:"source"`  // the published table, or the job type of the traces
	Model       string `json:"model"`
	Accelerator string `json:"accelerator"`
	Devices     int    `json:"devices"`
	GlobalBatch int    `json:"global_batch"`
	SeqLen      int    `json:"seq_len,omitempty"`
	Framework   string `json:"framework,omitempty"`
	// Placements lists the placements of the alternatives, by configuration: the same
	// devices on more nodes are an alternative too.
	Placements []string    `json:"placements"`
	Plans      int         `json:"plans"`  // different ones
	Chosen     Alternative `json:"chosen"` // predicted fastest
	Best       Alternative `json:"best"`   // measured fastest
	Regret     float64     `json:"regret"` // how much longer Chosen takes than Best, as a share of Best
}

// alternativesOf returns the choices among the predictions, in order of their first
// rows.
func alternativesOf(dataset string, predictions []prediction) []Alternatives {
	var out []Alternatives
	for _, g := range choices(predictions) {
		out = append(out, describe(dataset, g))
	}
	return out
}

// describe returns the common properties of a choice, and its chosen and best
// alternative.
func describe(dataset string, g []prediction) Alternatives {
	k := choiceOf(&g[0])
	pick, best := pickOf(g), bestOf(g)
	out := Alternatives{
		Dataset: dataset, Source: k.part, Model: k.model.Name, Accelerator: k.accelerator, Devices: k.devices,
		GlobalBatch: k.batch, SeqLen: k.seq, Framework: k.framework,
		Plans: plans(g), Chosen: alternativeOf(&pick), Best: alternativeOf(&best), Regret: regretOf(g),
	}
	for i := range g {
		if p := g[i].config.Shape.String(); !slices.Contains(out.Placements, p) {
			out.Placements = append(out.Placements, p)
		}
	}
	return out
}

func alternativeOf(a *prediction) Alternative {
	return Alternative{Row: rowName(a.part, a.id), Plan: a.config.Plan.String(), Placement: a.config.Shape.String(), MeasuredSec: a.want, PredictedSec: a.got}
}

// PartRegret is the Regret of all choices, or of those of a data set or part.
type PartRegret struct {
	Name string `json:"name"`
	Regret
}

// regretsOf returns the regret of all choices, of each data set and of each of
// its parts, in that order.
func regretsOf(all []Alternatives) []PartRegret {
	of := map[string][]float64{}
	var names []string
	add := func(name string, regret float64) {
		if _, ok := of[name]; !ok {
			names = append(names, name)
		}
		of[name] = append(of[name], regret)
	}
	for i := range all {
		add("all", all[i].Regret)
	}
	for i := range all {
		add(all[i].Dataset, all[i].Regret)
	}
	for i := range all {
		add(all[i].Dataset+"/"+all[i].Source, all[i].Regret)
	}
	out := make([]PartRegret, len(names))
	for i, name := range names {
		out[i] = PartRegret{name, regretOver(of[name])}
	}
	return out
}
