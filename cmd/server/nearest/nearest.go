package nearest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spacefill"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// NearRow is a measurement, its distance to the plan asked about, and what the performance model says about it.
type NearRow struct {
	Distance    float64        `json:"distance" doc:"Sum over what differs: each factor of two between sizes and each other name counts with its weight in the covariance of the residuals of performance models; 0 = the same."`
	Differs     []Difference   `json:"differs"`
	Model       string         `json:"model"`
	Accelerator string         `json:"accelerator"`
	Devices     int            `json:"devices"`
	Plan        string         `json:"plan"`
	Outcome     spec.Outcome   `json:"outcome"`
	StepTimeSec float64        `json:"step_time_s" doc:"Median; 0 if out of memory or not recorded."`
	MemGiB      float64        `json:"mem_gib" doc:"Peak; 0 if not recorded."`
	Predicted   *NearPredicted `json:"predicted,omitempty" doc:"What the performance model of the row's own model and accelerator predicts; absent where it cannot."`
	Doubt       string         `json:"doubt,omitempty" doc:"Why the row is neither fitted nor scored."`
	Source      string         `json:"source"`
	Origin      string         `json:"origin,omitempty" doc:"Place in the source."`
	Document    string         `json:"document,omitempty" doc:"File in which the source states the row, and its commit."`
	URL         string         `json:"url,omitempty" doc:"Where the source is published."`
	Framework   string         `json:"framework,omitempty"`
}

// NearPredicted is the predicted step time of a measurement.
type NearPredicted struct {
	StepTimeSec float64 `json:"step_time_s"`
	StepTimeLo  float64 `json:"step_time_lo_s"`
	StepTimeHi  float64 `json:"step_time_hi_s"`
	By          string  `json:"by"`
}

// Difference is something in which a measurement differs from the plan asked about.
type Difference struct {
	What     string `json:"what" example:"dp"`
	Asked    string `json:"asked"`
	Measured string `json:"measured"`
}

// Neighbour is a measurement and its distance.
type Neighbour struct {
	spec.Measurement
	distance float64
}

// Find returns the top measurements nearest to c, one of each configuration and source, and how many were compared. It fails
// with the first error of all.
func Find(all iter.Seq2[spec.Measurement, error], c *spec.Config, top int) (out []Neighbour, compared int, err error) {
	distance := spacefill.DistanceFrom(c)
	for m, err := range all {
		if err != nil {
			return nil, 0, err
		}
		if m.Outcome != spec.OK && m.Outcome != spec.OOM || m.Config.Alone() { // a rank alone is near no whole plan
			continue
		}
		compared++
		d := distance(&m.Config)
		if len(out) == top && d >= out[top-1].distance {
			continue
		}
		if slices.ContainsFunc(out, func(n Neighbour) bool { return n.Source == m.Source && n.Config == m.Config }) {
			continue
		}
		i, _ := slices.BinarySearchFunc(out, d, func(n Neighbour, d float64) int { return cmp.Compare(n.distance, d) })
		out = slices.Insert(out, i, Neighbour{m, d})
		out = out[:min(len(out), top)]
	}
	return out, compared, nil
}

// Row describes n beside the configuration in question, without a prediction.
func (n *Neighbour) Row(asked *spec.Config) NearRow {
	c := &n.Config
	return NearRow{Distance: n.distance, Differs: differences(asked, c), Model: c.Model.Name, Accelerator: c.Accelerator.Name, Devices: c.Plan.Devices(),
		Plan: c.Plan.String(), Outcome: n.Outcome, StepTimeSec: n.MedianStepSec(), MemGiB: n.PeakBytes / memory.GiB, Doubt: n.DoubtReason(),
		Source: n.Source, Origin: n.Origin, Document: documentOf(n.Env), URL: sourceURL(n.Source), Framework: c.Framework}
}

// documentOf returns the file and commit in the facts of a row, "" without them.
func documentOf(env map[string]string) string {
	file, commit := env["source_path"], env["source_commit"]
	if file != "" && commit != "" {
		file += "@" + commit[:min(len(commit), 12)]
	}
	return file
}

// sourceURL returns the address of a public data set, "" of other sources.
func sourceURL(source string) string {
	name, _, _ := strings.Cut(source, "/")
	for _, i := range datasets.Importers() {
		if i.Name == name && strings.HasPrefix(i.URL, "https://") {
			return i.URL
		}
	}
	return ""
}

// differences lists what differs between two configurations.
func differences(asked, measured *spec.Config) []Difference {
	out := []Difference{}
	add := func(what, a, b string) {
		if a != b {
			out = append(out, Difference{what, a, b})
		}
	}
	add("model", asked.Model.Name, measured.Model.Name)
	add("accelerator", asked.Accelerator.Name, measured.Accelerator.Name)
	add("devices of each node", query.ShapeText(asked.Shape), query.ShapeText(measured.Shape))
	add("tokens per sample", fmt.Sprint(asked.Seq()), fmt.Sprint(measured.Seq()))
	add("global batch", fmt.Sprint(asked.Plan.GlobalBatch()), fmt.Sprint(measured.Plan.GlobalBatch()))
	a, b := planParts(asked.Plan), planParts(measured.Plan)
	for _, part := range planOrder {
		add(part, cmp.Or(a[part], "-"), cmp.Or(b[part], "-"))
	}
	add("training stack", cmp.Or(asked.Framework, "any"), cmp.Or(measured.Framework, "not recorded"))
	return out
}

// planOrder are the parts of a plan, in the order of its text.
var planOrder = []string{"dp", "tp", "pp", "cp", "ep", "vp", "schedule", "mb", "ga", "zero", "shard", "offload", "recompute", "sp", "precision"}

// planParts returns the parts of a plan as text, by the names that the API gives them.
func planParts(p spec.Plan) map[string]string {
	b, err := json.Marshal(p.Normal())
	var parts map[string]any
	if err == nil {
		err = json.Unmarshal(b, &parts)
	}
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for name, v := range parts {
		if v == true {
			v = 1 // as in the text of a plan
		}
		out[name] = fmt.Sprint(v)
	}
	return out
}
