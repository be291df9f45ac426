package query

import (
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/launch/recipe"
)

// CheckRequest asks about a launch file. Fields of Request replace what the file says.
type CheckRequest struct {
	Request
	File     string            // name of the file
	Text     []byte            // its content
	Format   string            // of the file, "" = found by its keys
	Set      map[string]string // shell variables, and fields of the recipe
	Devices  int               // 0 = those of the file
	Measured float64           // seconds of a measured step, 0 = none
	To       string            // accelerator to port the recipe to, "" = none
	Tokens   float64           // to train on, 0 = those of the file
	Price    float64           // of a device-hour, 0 = none
}

// Check is the JSON of pacer check.
type Check struct {
	Format     string               `json:"format" doc:"Format of the file."`
	Understood map[recipe.Field]any `json:"understood" doc:"What the file says, by field."`
	Unknown    []string             `json:"unknown_keys" doc:"Keys that are not known. Each makes the prediction less certain."`
	Uncounted  []UncountedKey       `json:"uncounted_keys" doc:"Keys that change time or memory in a way that predictions do not count. Each makes the prediction less certain."`
	Ignored    []string             `json:"ignored_keys" doc:"Keys without an effect on time and memory."`
	Assumed    []string             `json:"assumed" doc:"What is not in the file and was assumed."`
	Problems   []string             `json:"problems" doc:"Contradictions, and what is illegal."`
	Missing    *MissingField        `json:"missing,omitempty" doc:"What neither the file nor the request says; then there is no plan."`
	Unset      []string             `json:"unset_variables" doc:"Shell variables without a value."`
	Model      string               `json:"model,omitempty"`
	Network    *spec.Model          `json:"network,omitempty" doc:"The network that the file describes itself."`
	Plan       *PlanRow             `json:"plan,omitempty" doc:"The plan with its prediction. The interval has the keys that are not counted."`
	Verdict    string               `json:"verdict,omitempty" doc:"fits, unsure or does not fit, with the keys that are not counted."`
	FitChance  float64              `json:"fit_probability,omitempty" doc:"Probability that the plan fits, with the keys that are not counted."`
	Parts      map[string]float64   `json:"parts_gib,omitempty" doc:"Memory by part."`
	Tokens     float64              `json:"tokens,omitempty" doc:"Tokens to train on, of the request or the file."`
	Days       float64              `json:"days,omitempty"`
	DeviceHrs  float64              `json:"device_hours,omitempty"`
	Cost       float64              `json:"cost,omitempty" doc:"In the currency of the price."`
	EnergyKWh  float64              `json:"energy_kwh,omitempty" doc:"Of the devices at their power limit."`
	Changes    []Change             `json:"changes" doc:"The five best single changes: those that the file can hold, the best first, then those that are made elsewhere."`
	Port       *Port                `json:"port,omitempty" doc:"The recipe on another accelerator."`
	Measured   *Comparison          `json:"measured,omitempty" doc:"Comparison with a measured step."`
}

// MissingField is a field that a request must give, since the file does not.
type MissingField struct {
	Field string `json:"field" example:"accelerator"`
	Why   string `json:"why"`
}

// UncountedKey is a key that predictions do not count.
type UncountedKey struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	Why   string `json:"why"`
}

// Change is a single change of the plan.
type Change struct {
	Change  string  `json:"change" example:"mb=2,ga=8"`
	Plan    string  `json:"plan"`
	Gain    float64 `json:"gain" doc:"Throughput gained, as a share; may be negative if the plan of the file does not fit."`
	StepS   float64 `json:"step_time_s"`
	MemGiB  float64 `json:"mem_gib"`
	Verdict string  `json:"verdict"`
	Diff    string  `json:"diff,omitempty" doc:"Unified diff of the file, which then says the plan."`
	NoDiff  string  `json:"no_diff,omitempty" doc:"Why there is no diff: what the format has no key for, or which key is not written as a plain value."`

	Elsewhere string `json:"elsewhere,omitempty" doc:"Without a diff: the flags of the program, or the keys of another file, that make the change."`
}

// Port is a recipe on another accelerator.
type Port struct {
	Accelerator string   `json:"accelerator"`
	Notes       []string `json:"notes" doc:"What the accelerator lacks that the file asks for, and what takes its place."`
	Same        *PlanRow `json:"same_plan,omitempty" doc:"The plan of the file there; absent where it is illegal there."`
	Best        PlanRow  `json:"best_plan" doc:"The best plan there with the same batch: on as many devices, or on the fewest of twice, four times as many and so on if nothing fits on them."`
	Diff        string   `json:"diff,omitempty" doc:"Unified diff of the file to the best plan that the format can hold."`
	NoDiff      string   `json:"no_diff,omitempty" doc:"Why there is no diff."`
	Held        *PlanRow `json:"held_plan,omitempty" doc:"The plan of diff: the best that the format can hold."`
}
