package experiment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/perfmodel/yamlfile"
	"github.com/pacer-ml/pacer/scheduler/learn"
)

// TrainingOptions describe the training of policy dl2. Policy of the simulation is not
// used. DefaultTraining has the defaults.
type TrainingOptions struct {
	Simulation Options
	Learn      learn.Options
}

// DefaultTraining returns the defaults: those of learn.DefaultOptions, 20 jobs at once, slots
// of 1200 s, a state with speeds, teacher drf.
func DefaultTraining() TrainingOptions {
	o := TrainingOptions{Learn: learn.DefaultOptions()}
	o.Learn.Supervised.Teacher = "drf"
	o.Learn.Form.Jobs, o.Learn.Form.SlotSec, o.Learn.Form.Speeds = 20, 1200, true
	return o
}

// TrainingSetting is a setting of a training file.
type TrainingSetting struct {
	Name, Default, Doc string
}

// trainingSetting reads and writes one setting.
type trainingSetting struct {
	name, doc string
	value     func(*learn.Options) any // *int, *float64, *string, *bool, *learn.Reward, or choice
}

// choice is a bool with a word for each of its values.
type choice struct {
	to      *bool
	yes, no string
}

var trainingSettings = []trainingSetting{
	{"teacher", "NAME[:key[=value]...] of the policy to imitate first", func(o *learn.Options) any { return &o.Supervised.Teacher }},
	{"jobs", "jobs that the network sees at once", func(o *learn.Options) any { return &o.Form.Jobs }},
	{"slot", "seconds between two decisions about running jobs", func(o *learn.Options) any { return &o.Form.SlotSec }},
	{"state", "paper, or speeds for a state with the predicted speeds of jobs", func(o *learn.Options) any { return choice{&o.Form.Speeds, "speeds", "paper"} }},
	{"net", "dense for one network over all jobs, as in the paper, or shared for one network per job with the sum of all", func(o *learn.Options) any { return choice{&o.Form.Dense, "dense", "shared"} }},
	{"hidden", "units of each of the two hidden layers", func(o *learn.Options) any { return &o.Hidden }},
	{"updates", "updates by the teacher's actions; 0 skips imitation", func(o *learn.Options) any { return &o.Supervised.Updates }},
	{"rounds", "times the teacher is recorded; from the second on in the states that the network reaches", func(o *learn.Options) any { return &o.Supervised.Rounds }},
	{"watch", "workloads in each of these rounds", func(o *learn.Options) any { return &o.Supervised.Episodes }},
	{"batch", "actions per update by the teacher", func(o *learn.Options) any { return &o.Supervised.Batch }},
	{"rate", "Adam's learning rate by the teacher", func(o *learn.Options) any { return &o.Supervised.Rate }},
	{"iterations", "iterations of reinforcement learning; 0 skips it", func(o *learn.Options) any { return &o.Reinforced.Iterations }},
	{"episodes", "workloads in each iteration", func(o *learn.Options) any { return &o.Reinforced.Episodes }},
	{"steps", "updates in each iteration", func(o *learn.Options) any { return &o.Reinforced.Updates }},
	{"own-batch", "actions per update of reinforcement learning", func(o *learn.Options) any { return &o.Reinforced.Batch }},
	{"own-rate", "Adam's learning rate of reinforcement learning", func(o *learn.Options) any { return &o.Reinforced.Rate }},
	{"discount", "of the reward of the next slot, in [0, 1]", func(o *learn.Options) any { return &o.Reinforced.Discount }},
	{"lambda", "of the advantage of the next slot, in [0, 1]", func(o *learn.Options) any { return &o.Reinforced.Lambda }},
	{"soften", "divisor of the imitated preferences before reinforcement learning, so that it explores", func(o *learn.Options) any { return &o.Reinforced.Soften }},
	{"entropy", "weight of the policy's entropy", func(o *learn.Options) any { return &o.Reinforced.Entropy }},
	{"explore", "probability of helping a job that has only workers or only servers; 0 = never", func(o *learn.Options) any { return &o.Reinforced.Explore }},
	{"replay-size", "actions kept to learn from; 0 = those of the iteration", func(o *learn.Options) any { return &o.Reinforced.Replay }},
	{"reward", "progress (share of jobs' work done in a slot), per-action, or waiting (time jobs are in the system)", func(o *learn.Options) any { return &o.Reinforced.Reward }},
	{"no-value", "true compares with the mean, not with a value network", func(o *learn.Options) any { return &o.Reinforced.NoValue }},
	{"validate", "iterations between validations; 25 updates when imitating", func(o *learn.Options) any { return &o.ValidateIterations }},
	{"validation", "workloads of a validation", func(o *learn.Options) any { return &o.Validation }},
}

// TrainingSettings lists the settings of a training file, with their defaults.
func TrainingSettings() (out []TrainingSetting) {
	def := DefaultTraining()
	for _, s := range trainingSettings {
		out = append(out, TrainingSetting{s.name, textOf(s.value(&def.Learn)), s.doc})
	}
	return out
}

func trainingNames() (names []string) {
	for _, s := range trainingSettings {
		names = append(names, s.name)
	}
	return names
}

// textOf writes the value of a setting.
func textOf(v any) string {
	switch v := v.(type) {
	case *int:
		return strconv.Itoa(*v)
	case *float64:
		return strconv.FormatFloat(*v, 'g', -1, 64)
	case *string:
		return *v
	case *learn.Reward:
		return string(*v)
	case *bool:
		return strconv.FormatBool(*v)
	case choice:
		if *v.to {
			return v.yes
		}
		return v.no
	}
	panic(fmt.Sprintf("experiment: setting of type %T", v))
}

// Set sets one setting of the training, or of the simulation, by name.
func (o *TrainingOptions) Set(name, value string) error {
	if err := o.set(name, value); err != nil {
		return invalidBecause("set", name+"="+value, fmt.Errorf("{set} %s: %w", name+"="+value, err))
	}
	return nil
}

func (o *TrainingOptions) set(name, value string) error {
	i := slices.IndexFunc(trainingSettings, func(s trainingSetting) bool { return s.name == name })
	if i >= 0 {
		return parseSetting(trainingSettings[i].value(&o.Learn), value)
	}
	if slices.Contains(StudySettings, name) {
		return o.Simulation.Set(name, value)
	}
	known := slices.Concat(trainingNames(), StudySettings)
	return fmt.Errorf("unknown setting, nearest: %s", strings.Join(named.Nearest(name, known, 3), ", "))
}

// parseSetting reads text into a setting.
func parseSetting(to any, text string) error {
	switch to := to.(type) {
	case *learn.Reward:
		*to = learn.Reward(text)
	case choice:
		if text != to.yes && text != to.no {
			return fmt.Errorf("%q is not %s or %s", text, to.yes, to.no)
		}
		*to.to = text == to.yes
	default:
		return named.Parse(text, to)
	}
	return nil
}

// ReadFile sets the settings in a YAML file, a key each.
func (o *TrainingOptions) ReadFile(path string) error {
	text, err := query.ReadFile("config", path, maxStudyFile)
	if err != nil {
		return err
	}
	f := &yamlfile.File{Name: path, Package: "experiment", Kind: "training"}
	for _, e := range f.Parse(text).Entries(slices.Concat(trainingNames(), StudySettings)...) {
		if err := o.set(e.Key, e.Value.Scalar()); err != nil {
			e.Value.Fail("%s %w", e.Key, err)
		}
	}
	if err := f.Err(); err != nil {
		return invalidBecause("config", path, err)
	}
	return nil
}
