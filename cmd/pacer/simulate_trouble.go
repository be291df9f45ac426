package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// troubleFlags are what starts cost, and what goes wrong with machines.
var troubleFlags = []cli.Flag{
	&cli.StringFlag{Name: "start-cost", Usage: "`SECONDS` or MODEL=SECONDS,... charged per start, resume or change (default: that of --compat, or 260 with a rubick: truth, else 0)"},
	&cli.StringFlag{Name: "costs", Usage: "what starts and checkpoints cost by model, in place of --start-cost: `FILE.csv`, or state[:restart=S][:gbytes=G] by the bytes of their state"},
	&cli.StringFlag{Name: "resize-cost", Usage: "`SECONDS` it takes a running job to go on with other devices if it keeps some on one of its nodes (default: as much as a start)"},
	&cli.StringFlag{Name: "checkpoint-every", Usage: "running jobs write a checkpoint after every so many `SECONDS` of training, of which a failure loses the rest (default: only when they are stopped or moved)"},
	&cli.StringFlag{Name: "failures", Usage: "nodes fail: `UP/DOWN` mean times such as 30d/2h, TYPE=UP/DOWN,... by accelerator, or FILE.csv of outages"},
	&cli.StringFlag{Name: "node-sigma", Usage: "nodes differ in speed: `SIGMA`, standard deviation of ln(speed), mean 1"},
	&cli.StringFlag{Name: "stragglers", Usage: "nodes are slow at times: `EVERY/LAST/SPEED`, mean times and the speed left, such as 10d/1h/0.5"},
}

const troubleHelp = `
Costs: a start costs what --start-cost says, or launch, and restore unless it
is the first, the checkpoint a stopped or moved job wrote, and reshard if its
plan changed. --costs FILE.csv has these by model, in seconds, * for others:

   model,launch_s,checkpoint_s,restore_s,reshard_s
   llama7b,40,25,30,15
   *,20,5,5,0

With --resize-cost a running job that keeps devices on one of its nodes is not
restarted to have more or others: its processes stay, and tell the new ones
what they know. Who was stopped is.

--costs state takes 12 to 14 bytes a parameter through storage of 2 GB/s a node
(gbytes=2) and 30 s for all else (restart=30), as pacer plan does for moves.

Failures: a node that goes down takes its jobs along. They lose what they did
since their last checkpoint and wait for devices. A file says when exactly,
nodes from 0, an empty up_s for ever:

   node,down_s,up_s
   3,86400,90000

What is drawn follows from --seed and the node's number, whatever the policy;
a gang runs at the speed of its slowest node, and no policy is told of speeds.`

// trouble is what starts cost, and what goes wrong with machines.
type trouble struct {
	costs     sim.Costs
	costsText string // as given, or the default
	every     time.Duration
	failures  func(seed uint64) sim.Failures // nil = none
	speeds    sim.Variation                  // but for its seed
	text      string                         // what goes wrong, as given
	files     [][sha256.Size]byte            // digests of the tables it is made from
}

// config puts the trouble of a seed into a run.
func (t *trouble) config(c *sim.Config, seed uint64) {
	c.Costs, c.CheckpointEvery = t.costs, t.every
	if t.failures != nil {
		c.Failures = t.failures(seed)
	}
	if t.speeds != (sim.Variation{}) {
		v := t.speeds
		v.Seed = seed
		c.Speeds = v
	}
}

// drawnTrouble reports whether another seed makes other trouble with these flags.
func drawnTrouble(flags map[string]string) bool {
	return flags["node-sigma"] != "" || flags["stragglers"] != "" || flags["failures"] != "" && !isTable(flags["failures"])
}

// isTable reports whether the value of a flag names a file.
func isTable(text string) bool { return strings.EqualFold(filepath.Ext(text), ".csv") }

// readTrouble reads the flags; startCost is the default of --start-cost.
func (s *study) readTrouble(c *cli.Context, startCost time.Duration) error {
	t := &s.trouble
	if err := s.readCosts(c, startCost); err != nil {
		return err
	}
	if text := c.String("resize-cost"); text != "" {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 0 && v < 1e9) {
			return usagef("simulate: --resize-cost %q is not a number of seconds", text)
		}
		t.costs = sim.Resizing{Costs: t.costs, Resize: time.Duration(v * float64(time.Second))}
		t.costsText += fmt.Sprintf(", %g s for a change while it runs", v)
	}
	if text := c.String("checkpoint-every"); text != "" {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 1 && v < 1e9) {
			return usagef("simulate: --checkpoint-every %q is not a number of seconds, at least 1", text)
		}
		t.every = time.Duration(v * float64(time.Second))
	}
	if text := c.String("failures"); text != "" {
		if err := s.readFailures(text); err != nil {
			return err
		}
	}
	if err := t.readSpeeds(c); err != nil {
		return err
	}
	t.text = troubleText(c)
	if s.parts.mode.Quirks.Barrier && (t.every > 0 || t.failures != nil || t.speeds != (sim.Variation{})) {
		return usagef("simulate: --compat %s knows no --checkpoint-every, --failures, --node-sigma and --stragglers: leave them out, or turn its quirk barrier off", s.parts.mode.Name)
	}
	return nil
}

// noTrouble is what a report says of machines that do what they should.
const noTrouble = "none"

// troubleText repeats the flags that make trouble.
func troubleText(c *cli.Context) string {
	var words []string
	for _, f := range []string{"failures", "checkpoint-every", "node-sigma", "stragglers"} {
		if v := c.String(f); v != "" {
			words = append(words, f+" "+v)
		}
	}
	if len(words) == 0 {
		return noTrouble
	}
	return strings.Join(words, ", ")
}

// readCosts reads --costs, without it --start-cost.
func (s *study) readCosts(c *cli.Context, startCost time.Duration) (err error) {
	t, text := &s.trouble, c.String("costs")
	kind, options, _ := strings.Cut(text, ":")
	switch {
	case text == "":
		return s.parseStartCost(c.String("start-cost"), startCost)
	case c.String("start-cost") != "":
		return usagef("simulate: --costs and --start-cost both say what a start costs: leave one out")
	case isTable(text):
		err = s.readCostTable(text)
	case kind == "state":
		err = s.stateCosts(options)
	default:
		err = usagef("simulate: --costs %q is neither a FILE.csv nor state[:restart=S][:gbytes=G]", text)
	}
	t.costsText = text
	if err != nil {
		return err
	}
	return s.checkCosts()
}

// models returns the names of the models that jobs train, each once.
func (s *study) models(of func(spec.Model) bool) []string {
	var out []string
	for i := range s.jobs {
		if m := &s.jobs[i].Model; of(*m) {
			out = append(out, m.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// listed writes names of models for a message.
func listed(models []string) string {
	for i, m := range models {
		models[i] = cmp.Or(m, `"" (jobs without a model)`)
	}
	return strings.Join(models, ", ")
}

// readTable reads the file behind a flag, which becomes part of what was asked for.
func (t *trouble) readTable(path string) (*bytes.Reader, error) {
	text, err := readSmall(path, maxTableFile)
	if err != nil {
		return nil, err
	}
	t.files = append(t.files, sha256.Sum256(text))
	return bytes.NewReader(text), nil
}

// maxTableFile bounds tables of costs and outages, in bytes.
const maxTableFile = 64 << 20

func (s *study) readCostTable(path string) error {
	r, err := s.trouble.readTable(path)
	if err != nil {
		return err
	}
	table, err := sim.ReadCosts(r, path)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	s.trouble.costs = table
	return nil
}

// checkCosts checks that what starts cost is known for every job.
func (s *study) checkCosts() error {
	switch costs := s.trouble.costs.(type) {
	case *sim.CostTable:
		if missing := costs.Missing(s.models(func(spec.Model) bool { return true })); len(missing) > 0 {
			return usagef("simulate: --costs %s has no row for %s: add one for each, or one for model * that is for all others",
				s.trouble.costsText, listed(missing))
		}
	case *sim.StateCosts:
		if unknown := s.models(func(m spec.Model) bool { return !(m.Params() > 0) }); len(unknown) > 0 {
			return usagef("simulate: --costs %s: the size of %s is not known: name models of pacer ls models in the workload, or give a FILE.csv of costs",
				s.trouble.costsText, listed(unknown))
		}
	}
	return nil
}

func (s *study) stateCosts(options string) error {
	costs, given := &sim.StateCosts{}, once{}
	for _, o := range strings.Split(options, ":") {
		key, text, _ := strings.Cut(o, "=")
		if given.again(key) {
			return usagef("simulate: --costs state: %s is given twice", key)
		}
		v, err := strconv.ParseFloat(text, 64)
		switch good := err == nil && v > 0 && v < 1e9; {
		case options == "":
		case key == "restart" && good:
			costs.RestartSec = v
		case key == "gbytes" && good:
			costs.NodeBps = v * 1e9
		default:
			return usagef("simulate: --costs state: %q is neither restart=SECONDS nor gbytes=G, numbers above 0", o)
		}
	}
	s.trouble.costs = costs
	return nil
}

// readFailures reads UP/DOWN[,TYPE=UP/DOWN...] or FILE.csv.
func (s *study) readFailures(text string) error {
	if isTable(text) {
		r, err := s.trouble.readTable(text)
		if err != nil {
			return err
		}
		table, err := sim.ReadOutages(r, text, s.cluster.Nodes())
		if err != nil {
			return &exitError{exitUsage, err}
		}
		s.trouble.failures = func(uint64) sim.Failures { return table }
		return nil
	}
	lives := map[string]sim.Lifetime{} // by accelerator, "" = all others
	for _, item := range strings.Split(text, ",") {
		kind, times, named := strings.Cut(item, "=")
		if !named {
			kind, times = "", item
		}
		up, down, _ := strings.Cut(times, "/")
		u, err1 := parseTime(up)
		d, err2 := parseTime(down)
		if err1 != nil || err2 != nil {
			return usagef("simulate: --failures %q: %q is not UP/DOWN, mean times of at least a second each such as 30d/2h", text, times)
		}
		if _, twice := lives[kind]; twice {
			return usagef("simulate: --failures %q: %q says it a second time", text, item)
		}
		if named && !slices.ContainsFunc(s.cluster.Groups, func(g spec.NodeGroup) bool { return g.Accelerator.Name == kind }) {
			return usagef("simulate: --failures %q: the cluster is %s, without %s", text, clusterString(s.cluster), kind)
		}
		lives[kind] = sim.Lifetime{Up: u, Down: d}
	}
	of := func(g *spec.NodeGroup) sim.Lifetime {
		if l, ok := lives[g.Accelerator.Name]; ok {
			return l
		}
		return lives[""]
	}
	drawn, err := sim.NewLifetimes(s.cluster, 0, of)
	s.trouble.failures = func(seed uint64) sim.Failures {
		l := drawn
		l.Seed = seed
		return l
	}
	return err
}

// readSpeeds reads --node-sigma and --stragglers.
func (t *trouble) readSpeeds(c *cli.Context) error {
	if text := c.String("node-sigma"); text != "" {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return usagef("simulate: --node-sigma %q is not a number", text)
		}
		t.speeds.Sigma = v
	}
	if text := c.String("stragglers"); text != "" {
		bad := usagef("simulate: --stragglers %q is not EVERY/LAST/SPEED, two mean times of at least a second and a speed above 0 and below 1, such as 10d/1h/0.5", text)
		parts := strings.Split(text, "/")
		if len(parts) != 3 {
			return bad
		}
		var errs [3]error
		t.speeds.Every, errs[0] = parseTime(parts[0])
		t.speeds.Last, errs[1] = parseTime(parts[1])
		t.speeds.Slow, errs[2] = strconv.ParseFloat(parts[2], 64)
		for _, err := range errs {
			if err != nil {
				return bad
			}
		}
	}
	if err := t.speeds.Validate(); err != nil {
		return usagef("simulate: %w", err)
	}
	return nil
}

// parseTime reads a time of at least a second, at most thirty years: a number
// with unit s, m, h or d, without one in seconds.
func parseTime(text string) (time.Duration, error) {
	unit := time.Second
	for suffix, u := range map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour} {
		if number, ok := strings.CutSuffix(text, suffix); ok {
			text, unit = number, u
			break
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v*unit.Seconds() >= 1 && v*unit.Seconds() < 1e9) {
		return 0, fmt.Errorf("%q is not a time", text)
	}
	return time.Duration(v * float64(unit)), nil
}
