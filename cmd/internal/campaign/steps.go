package campaign

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/scheduler/report"
)

// PlanPoint is a point in the JSON of profile plan.
type PlanPoint struct {
	Model       string  `json:"model"`
	Accelerator string  `json:"accelerator"`
	Plan        string  `json:"plan"`
	Shape       string  `json:"shape"`
	SeqLen      int     `json:"seq_len"`
	AloneStage  int     `json:"alone_stage,omitempty"` // one rank of this stage without the others; 0 = the whole plan
	HoldSec     float64 `json:"hold_s"`                // expected, launch included
	MemGiB      float64 `json:"mem_gib"`               // estimated peak per device, 0 = unknown
}

// PlanPoints describes the points of steps.
func PlanPoints(steps []profiler.Step) []PlanPoint {
	out := make([]PlanPoint, len(steps))
	for i, step := range steps {
		x := step.Point.Config
		out[i] = PlanPoint{Model: x.Model.Name, Accelerator: x.Accelerator.Name, Plan: x.Plan.String(), Shape: x.Shape.String(), SeqLen: x.Seq(), AloneStage: x.AloneStage, HoldSec: step.Seconds}
		if b, err := memory.Estimate(x); err == nil {
			out[i].MemGiB = b.Total() / memory.GiB
		}
	}
	return out
}

// NextPoint is a point in the JSON of profile explain.
type NextPoint struct {
	Model       string  `json:"model"`
	Accelerator string  `json:"accelerator"`
	Plan        string  `json:"plan"`
	Shape       string  `json:"shape"`
	SeqLen      int     `json:"seq_len"`
	AloneStage  int     `json:"alone_stage,omitempty"` // as in PlanPoint
	Why         string  `json:"why"`
	Gain        float64 `json:"gain" doc:"Expected fall of the mean half width of the model's 90 % intervals, of ln step time."`
	HalfWidth   float64 `json:"half_width" doc:"Half width of the present 90 % interval of ln step time; 0 = none yet."`
	HoldSec     float64 `json:"hold_s" doc:"Expected seconds that measuring it holds the devices, with its start."`
}

// NextPoints describes the points of steps with the reason for each.
func NextPoints(steps []profiler.Step) []NextPoint {
	out := make([]NextPoint, len(steps))
	for i, step := range steps {
		x := step.Point.Config
		out[i] = NextPoint{x.Model.Name, x.Accelerator.Name, x.Plan.String(), x.Shape.String(), x.Seq(), x.AloneStage, step.Why, step.Gain, step.HalfWidth, step.Seconds}
	}
	return out
}

// ModelAccuracy is the accuracy of the predictions of a model, in the JSON of profile explain
// and run.
type ModelAccuracy struct {
	Model       string  `json:"model"`
	Accelerator string  `json:"accelerator"`
	Space       int     `json:"space"` // number of points
	Done        int     `json:"done"`
	HalfWidth   float64 `json:"half_width"` // nine in ten of its intervals are narrower, of ln step time; 0 = no fit yet
	Warning     string  `json:"warning,omitempty"`
}

// Accuracies describes the models of a run.
func Accuracies(models []profiler.ModelState) []ModelAccuracy {
	out := []ModelAccuracy{}
	for _, m := range models {
		out = append(out, ModelAccuracy{m.Key.Model, m.Key.Accelerator, m.Points, m.Done, m.HalfWidth, m.Warning})
	}
	return out
}

// PlusMinus writes a half width of ln step time as a share of the step time.
func PlusMinus(half float64) string {
	if half <= 0 {
		return "-"
	}
	return "±" + number.Significant(100*math.Expm1(half), 2) + " %"
}

// Cost is the expected cost of the remaining points of a run.
type Cost struct {
	Points      int     `json:"points"` // within the budget
	Open        int     `json:"open"`   // all
	HoldSec     float64 `json:"hold_s"` // of the points within the budget
	DeviceHours float64 `json:"device_hours"`
	OpenHoldSec float64 `json:"open_hold_s"` // of all
	OpenHours   float64 `json:"open_device_hours"`
}

// Estimate sums up the cost of steps; points within the budget cost the mean.
func Estimate(camp profiler.Campaign, state profiler.State, steps []profiler.Step) Cost {
	e := Cost{Open: len(steps)}
	for _, s := range steps {
		e.OpenHoldSec += s.Seconds
		e.OpenHours += s.Seconds * float64(s.Point.Config.RunDevices()) / 3600
	}
	if e.Open == 0 {
		return e
	}
	n := float64(e.Open)
	each, hours := e.OpenHoldSec/n, e.OpenHours/n
	b := camp.Budget
	if b.Points > 0 {
		n = min(n, float64(b.Points-state.Done))
	}
	if b.DeviceHours > 0 && hours > 0 {
		n = min(n, (b.DeviceHours-state.DeviceSec/3600)/hours)
	}
	if b.Wall > 0 && each > 0 {
		n = min(n, (b.Wall.Seconds()-state.WallSec)/each)
	}
	e.Points = max(int(n), 0)
	e.HoldSec, e.DeviceHours = float64(e.Points)*each, float64(e.Points)*hours
	return e
}

// Print writes the cost as sentences.
func (e Cost) Print(w io.Writer, camp profiler.Campaign) error {
	if e.Open == 0 {
		_, err := fmt.Fprintln(w, "No point is left to measure.")
		return err
	}
	fmt.Fprintf(w, "All %d hold their devices for about %s, %s device-hours. ", e.Open, Duration(e.OpenHoldSec), DeviceHours(e.OpenHours))
	if camp.Budget == (profiler.Budget{}) {
		fmt.Fprintln(w, "There is no budget.")
	} else {
		fmt.Fprintf(w, "The budget allows about %d: %s, %s device-hours.\n", e.Points, Duration(e.HoldSec), DeviceHours(e.DeviceHours))
	}
	_, err := fmt.Fprintln(w, "These are expected times: from the measurements of this run, else from the analytic model.")
	return err
}

// Duration writes seconds for people.
func Duration(sec float64) string { return report.Human(report.Number(sec)) }

// Budget is a budget in JSON; a field that does not bound is 0.
type Budget struct {
	Points      int     `json:"points"`
	DeviceHours float64 `json:"device_hours"`
	WallSec     float64 `json:"wall_s"`
}

// NewBudget returns b in base units.
func NewBudget(b profiler.Budget) Budget { return Budget{b.Points, b.DeviceHours, b.Wall.Seconds()} }

// Summary is the JSON of profile run.
type Summary struct {
	Tally
	Space    int             `json:"space"` // number of points
	Skipped  []RejectedGroup `json:"skipped"`
	Rejected []RejectedGroup `json:"rejected"`
	WallSec  float64         `json:"wall_s"`
	Stopped  string          `json:"stopped"`
	Known    []ModelAccuracy `json:"known"`
	Budget   Budget          `json:"budget"`
	Next     []string        `json:"next"` // commands
}

// Summarize describes a run that has ended, with the rows it measured. data is the value of
// --data for the next commands.
func (s *Session) Summarize(state profiler.State, rows []spec.Measurement, data string) Summary {
	return Summary{
		Tally: TallyRun(s.Campaign.Name, state.Label, rows), Space: state.Points,
		Skipped: GroupRejected(state.Skips), Rejected: GroupRejected(s.Rejected),
		WallSec: state.WallSec, Stopped: state.Stopped, Known: Accuracies(state.Models), Budget: NewBudget(s.Campaign.Budget),
		Next: s.nextCommands(rows, data),
	}
}

// nextCommands are the commands that use the rows; without a usable row there is no fit.
func (s *Session) nextCommands(rows []spec.Measurement, data string) []string {
	if data != "" {
		data = " --data " + console.ShellLine(data)
	}
	next := []string{"pacer export " + s.Campaign.Name + ".parquet --source " + s.Campaign.Source() + data}
	if slices.ContainsFunc(rows, perfmodel.UsableOrAlone) {
		next = slices.Insert(next, 0, "pacer fit --source "+s.Campaign.Source()+data)
	}
	return next
}

// Intent describes in a line the points to measure, the machine and the end of the run.
func (s *Session) Intent(state profiler.State) string {
	parts := []string{fmt.Sprintf("%s on %s", spec.Count(state.Points, "point"), s.Setup)}
	var budget []string
	b := s.Campaign.Budget
	if b.Points > 0 {
		budget = append(budget, spec.Count(b.Points, "point"))
	}
	if b.DeviceHours > 0 {
		budget = append(budget, fmt.Sprintf("%.3g device-hours", b.DeviceHours))
	}
	if b.Wall > 0 {
		budget = append(budget, Duration(b.Wall.Seconds()))
	}
	if len(budget) > 0 {
		parts = append(parts, "budget "+strings.Join(budget, ", "))
	}
	if s.Campaign.Until.Interval > 0 {
		parts = append(parts, fmt.Sprintf("until intervals are within %.3g %%", 100*s.Campaign.Until.Interval))
	}
	if state.Done > 0 {
		parts = append(parts, fmt.Sprintf("%d done", state.Done))
	}
	return fmt.Sprintf("profile %s, run %s: %s", s.Campaign.Name, state.Label, strings.Join(parts, "; "))
}
