package simqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
)

// Bounds of simulations. They run one after another, beside the searches.
const (
	MaxSimulations      = 16 // kept; the oldest that has ended makes place for a new one
	maxSimulatedJobs    = 2000
	maxSimulatedDevices = 4096
	maxSimulatedRuns    = 12 // policies
)

// SimulationRequest describes a simulation, as the flags of pacer simulate. It names no file of the server.
type SimulationRequest struct {
	Workload  string   `json:"workload,omitempty" maxLength:"1024" example:"jobs=100,per-hour=20,models=llama3-8b+opt-1.3b" doc:"Options of a synthetic workload, of at most 2000 jobs."`
	Jobs      []string `json:"jobs,omitempty" maxItems:"2001" doc:"In place of workload: the lines of a CSV file with the header job_id,submit_s,gpus,duration_s and, if wanted, model, plan and the other columns of pacer simulate."`
	Cluster   string   `json:"cluster" maxLength:"256" example:"4x8xH100" doc:"Nodes x devices x type, several with commas; at most 4096 devices."`
	Policies  []string `json:"policies" minItems:"1" maxItems:"12" example:"[\"fifo-backfill\",\"rubick\",\"pacer\"]" doc:"Each as NAME[:key[=value]...], see pacer ls policies."`
	Truth     string   `json:"truth,omitempty" maxLength:"256" doc:"Real speed of jobs: duration, rubick:measured, rubick:nearest or fitted:FAMILY; duration if absent."`
	Belief    string   `json:"belief,omitempty" maxLength:"256" doc:"Estimate of the policies: perfect, fitted:FAMILY, noisy:SIGMA or online:FAMILY; that of pacer simulate if absent."`
	StartCost *float64 `json:"start_cost_s,omitempty" minimum:"0" maximum:"86400" doc:"Time of a start or resume."`
	Explain   []string `json:"explain,omitempty" maxItems:"20" doc:"Jobs to list the events of, with their reasons."`
	Seed      uint64   `json:"seed,omitempty" doc:"Of all randomness; 1 if absent."`
}

// What names no file of the server.
var (
	truths  = regexp.MustCompile(`^(duration(:.+)?|rubick:(measured|nearest)|fitted:.+)$`)
	beliefs = regexp.MustCompile(`^(perfect|fitted:.+|noisy:.+|online:.+)$`)
)

// What does.
var (
	fromFile = regexp.MustCompile(`(^|,)\s*(fit|resample)=`)
	yamlFile = regexp.MustCompile(`(?i)\.ya?ml$`)
)

// read checks a request and makes its simulation. Nothing in it may name a file.
func (m *Queue) read(ctx context.Context, in *SimulationRequest) (run *experiment.Simulation, warnings []string, err error) {
	o := experiment.Options{Cluster: in.Cluster, Policy: strings.Join(in.Policies, ","), Truth: in.Truth, Belief: in.Belief, Seed: cmp.Or(in.Seed, 1),
		Data: experiment.Data{Rows: m.o.Resolver.Rows, Fitted: func() (*registry.Registry, error) { return m.o.Resolver.Fitted, nil }}}
	if in.StartCost != nil {
		o.StartCost = strconv.FormatFloat(*in.StartCost, 'g', -1, 64)
	}
	invalid := func(field string, value any, why string) error {
		return &query.FieldError{Field: field, Value: value, Why: why}
	}
	for _, f := range []struct {
		field, value string
		ok           bool
		want         string
	}{
		{"workload", in.Workload, !fromFile.MatchString(in.Workload), "options without fit and resample"},
		{"cluster", in.Cluster, !yamlFile.MatchString(in.Cluster), "nodes x devices x type"},
		{"truth", in.Truth, in.Truth == "" || truths.MatchString(in.Truth), "duration, rubick:measured, rubick:nearest or fitted:FAMILY"},
		{"belief", in.Belief, in.Belief == "" || beliefs.MatchString(in.Belief), "perfect, fitted:FAMILY, noisy:SIGMA or online:FAMILY"},
	} {
		if !f.ok {
			return nil, nil, invalid(f.field, f.value, "is not "+f.want+": the server reads no file")
		}
	}
	specs, err := builtin.Policies.Parse(o.Policy)
	if err != nil {
		return nil, nil, &query.FieldError{Field: "policies", Value: in.Policies, Err: err}
	}
	for _, p := range specs {
		if files := builtin.Policies.Files(p); len(files) > 0 {
			return nil, nil, invalid("policies", p.String(), "reads a file: the server reads none")
		}
	}
	if len(specs) > maxSimulatedRuns {
		return nil, nil, invalid("policies", in.Policies, fmt.Sprintf("has %d policies, want at most %d", len(specs), maxSimulatedRuns))
	}
	switch {
	case (in.Workload == "") == (len(in.Jobs) == 0):
		return nil, nil, invalid("workload", in.Workload, "and jobs: want one of them")
	case in.Workload != "":
		o.Workload = "synthetic:" + in.Workload
	default:
		path, err := temporary(strings.Join(in.Jobs, "\n") + "\n")
		if err != nil {
			return nil, nil, err
		}
		defer os.Remove(path)
		o.Workload = path + ":csv"
	}
	if n := jobsOf(in.Workload); n > maxSimulatedJobs {
		return nil, nil, invalid("workload", in.Workload, fmt.Sprintf("has %d jobs, want at most %d", n, maxSimulatedJobs))
	}
	field, path := "workload", strings.TrimSuffix(o.Workload, ":csv")
	if in.Workload == "" {
		field = "jobs"
	}
	o.Warn = func(w experiment.Warning) {
		warnings = append(warnings, w.Kind+": "+strings.ReplaceAll(w.Text, path, "jobs"))
	}
	run, err = experiment.New(ctx, o)
	var wrong *query.FieldError
	var unknown *catalog.UnknownError
	switch {
	case err == nil && len(run.Jobs) > maxSimulatedJobs:
		err = invalid(field, len(run.Jobs), fmt.Sprintf("jobs, want at most %d", maxSimulatedJobs))
	case err == nil && run.Cluster.Devices() > maxSimulatedDevices:
		err = invalid("cluster", in.Cluster, fmt.Sprintf("has %d devices, want at most %d", run.Cluster.Devices(), maxSimulatedDevices))
	case err == nil || ctx.Err() != nil || errors.As(err, &unknown):
	case field == "jobs" || !errors.As(err, &wrong):
		err = &query.FieldError{Field: field, Value: in.Workload, Err: errors.New(strings.ReplaceAll(err.Error(), path, "jobs"))}
	}
	return run, warnings, err
}

// jobsOf is the largest number of jobs in the options of a synthetic workload, 0 where they do not say it.
func jobsOf(options string) (n int) {
	for _, item := range strings.Split(options, ",") {
		for _, key := range []string{"jobs=", "ones="} {
			if text, ok := strings.CutPrefix(item, key); ok {
				jobs, _ := strconv.Atoi(strings.TrimSpace(text)) // what is no number is refused later
				n = max(n, jobs)
			}
		}
	}
	return n
}

// temporary writes text to a new file.
func temporary(text string) (path string, err error) {
	f, err := os.CreateTemp("", "pacer-jobs")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), err
}
