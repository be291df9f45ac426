package calibrate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/nextplans"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/launch"
	"github.com/pacer-ml/pacer/profiler"
)

// Suggested is the JSON of pacer calibrate --emit.
type Suggested struct {
	Framework   string       `json:"framework"`
	Version     string       `json:"version"`
	Rows        string       `json:"rows"`
	Suggestions []Suggestion `json:"suggestions"`
	Next        string       `json:"next"` // command that reads the results
}

// Suggestion is a plan to measure.
type Suggestion struct {
	RowID       string   `json:"row_id"`
	Plan        string   `json:"plan"`
	Shape       string   `json:"shape"`
	GlobalBatch int      `json:"global_batch"`
	Why         string   `json:"why"`
	Command     string   `json:"command"` // on every node
	File        string   `json:"file"`
	Text        string   `json:"text"` // of the file
	Notes       []string `json:"notes"`

	config spec.Config
}

// emit chooses the plans that are most worth measuring and writes their launch files and a file of rows for the
// results. Warnings about the model go to log.
func emit(ctx context.Context, o Options, d *datadir.Dir, log io.Writer) (*Suggested, error) {
	s, warnings, err := suggest(ctx, o, &query.Resolver{Read: d.ReadServed})
	if err != nil {
		return nil, err
	}
	printWarnings(log, warnings)
	s.Next = fmt.Sprintf("pacer calibrate --model %s --accelerator %s --devices %d --rows %s", console.ShellLine(o.Model), console.ShellLine(o.Accelerator), o.Devices, console.ShellLine(s.Rows))
	return s, s.write()
}

// suggest chooses plans in the order of their gain.
func suggest(ctx context.Context, o Options, d *query.Resolver) (*Suggested, []string, error) {
	f, err := launch.Lookup(o.Emit)
	if err != nil {
		return nil, nil, fail.Usagef("%w", err)
	}
	r, warnings, err := o.request(ctx, d, f.Stack)
	if err != nil {
		return nil, nil, err
	}
	details := catalog.Details(r.Model)
	if path, isFile := query.ConfigPath(o.Model); isFile && !o.isCampaign() {
		if details, err = query.ReadDetails(path); err != nil {
			return nil, nil, err
		}
	}
	var unable error
	configs, err := likely(ctx, r, func(c spec.Config) bool {
		_, err := f.Emit(c)
		unable = cmp.Or(unable, err)
		return err == nil
	})
	if err != nil && unable != nil {
		err = fail.WithCode(fail.NoAnswer, unable)
	}
	if err != nil {
		return nil, nil, err
	}
	if configs, err = readable(ctx, configs); err != nil {
		return nil, nil, err
	}
	out := &Suggested{Framework: f.Name, Version: f.Version, Rows: o.Rows}
	_, steps, err := nextplans.Informative(ctx, configs, nil, profiler.Budget{Points: o.Points})
	if err != nil {
		return nil, nil, err
	}
	for i, step := range steps {
		c := step.Point.Config
		s := Suggestion{RowID: strconv.Itoa(i + 1), Plan: c.Plan.String(), Shape: c.Shape.String(), GlobalBatch: c.Plan.GlobalBatch(), Why: step.Why, config: c}
		if err := s.emit(f, details, o.Rows); err != nil {
			return nil, nil, err
		}
		out.Suggestions = append(out.Suggestions, s)
	}
	return out, warnings, nil
}

// request returns the planner's request of o for a machine that need not be this one.
func (o *Options) request(ctx context.Context, d *query.Resolver, framework string) (planner.Request, []string, error) {
	q := query.Request{Model: o.Model, Accelerator: o.Accelerator, GlobalBatch: o.batch(), Seq: o.Seq,
		Framework: framework, Family: "analytic"}
	if o.Accelerator == "" || o.Devices < 1 {
		return planner.Request{}, nil, fail.Usagef("calibrate: --accelerator and --devices are needed with --emit and --rows")
	}
	var warnings []string
	if o.isCampaign() {
		o.Likely = true
		camp, _, err := o.campaign(ctx, d)
		if err != nil {
			return planner.Request{}, nil, err
		}
		q.Network = camp.Models[0]
	} else if _, isFile := query.ConfigPath(o.Model); isFile {
		var err error
		if q.Network, warnings, err = o.model(ctx, d); err != nil {
			return planner.Request{}, nil, err
		}
	}
	found, err := d.Resolve(ctx, q)
	if err != nil {
		return planner.Request{}, nil, err
	}
	return found.Request, warnings, found.On(&q, o.Devices)
}

// emit fills in the launch file and the command that starts it.
func (s *Suggestion) emit(f launch.Framework, details spec.Details, rows string) error {
	stem := strings.TrimSuffix(rows, filepath.Ext(rows))
	s.File = stem + "-" + s.RowID + filepath.Ext(f.File)
	script, err := f.EmitWith(s.config, launch.Options{Details: details, File: s.File})
	if err != nil {
		return err
	}
	s.Text, s.Notes = script.Text, query.OrEmpty(script.Notes)
	if strings.HasPrefix(script.Text, "#!") {
		s.Command = "bash " + console.ShellLine(s.File)
		return nil
	}
	for _, n := range script.Notes {
		if command, ok := strings.CutPrefix(n, "start it with: "); ok {
			s.Command = command
		}
	}
	return nil
}

// write writes the launch files, and then the file of rows. It replaces no file of rows that differs, since that
// may have results.
func (s *Suggested) write() error {
	var configs []spec.Config
	for _, x := range s.Suggestions {
		configs = append(configs, x.config)
	}
	rows := template(configs)
	switch old, err := os.ReadFile(s.Rows); {
	case err == nil && !bytes.Equal(old, rows):
		return fail.Usagef("calibrate: --rows %s exists already; leave --emit out to read it, or give another file", s.Rows)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	}
	for _, x := range s.Suggestions {
		if err := writeFile(x.File, []byte(x.Text)); err != nil {
			return err
		}
	}
	return writeFile(s.Rows, rows)
}

func writeFile(path string, text []byte) error {
	f, err := console.Create(path)
	if err != nil {
		return err
	}
	if bytes.HasPrefix(text, []byte("#!")) {
		f.Executable()
	}
	return f.Write(func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// Result is what the command prints.
func (s *Suggested) Result() console.Result {
	table := [][]string{{"row_id", "plan", "shape", "global_batch", "command", "why"}}
	for _, x := range s.Suggestions {
		table = append(table, []string{x.RowID, x.Plan, x.Shape, strconv.Itoa(x.GlobalBatch), x.Command, x.Why})
	}
	return console.Result{JSON: s, CSV: table, Table: func(w io.Writer) error {
		fmt.Fprintf(w, "Run these with %s %s, each for some twenty steps after the warm-up:\n\n", s.Framework, s.Version)
		for _, x := range s.Suggestions {
			fmt.Fprintf(w, "%s. %s\n   %s\n   %s\n", x.RowID, x.Command, x.Plan, x.Why)
		}
		seen := map[string]bool{}
		for _, x := range s.Suggestions {
			for _, n := range x.Notes {
				if !seen[n] && !strings.HasPrefix(n, "start it with: ") {
					seen[n] = true
					fmt.Fprintln(w, "Note:", n)
				}
			}
		}
		_, err := fmt.Fprintf(w, "\nEnter the median seconds of a step in column step_time_s of %s, and the peak memory in mem_gib if known\n(status=oom if a plan did not fit). Then: %s\n", s.Rows, s.Next)
		return err
	}}
}

// csvText writes rows as CSV.
func csvText(rows [][]string) []byte {
	var b bytes.Buffer
	_ = csv.NewWriter(&b).WriteAll(rows) // a buffer does not fail
	return b.Bytes()
}
