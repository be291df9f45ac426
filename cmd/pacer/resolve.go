package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/profiler/store"
)

// acceleratorName returns the catalog's name of an accelerator, or name itself
// when the catalog has none such: measurements may be on other parts.
func acceleratorName(name string) string {
	if a, err := catalog.Accelerator(name); err == nil {
		return a.Name
	}
	return name
}

func acceleratorNames(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = acceleratorName(n)
	}
	return out
}

// subject is what a planning question is about: a model on an accelerator, and
// the circumstances its measurements were taken in, if there are any.
type subject struct {
	model       spec.Model
	seqLen      int
	accelerator spec.Accelerator
	node        spec.Node
	link        spec.Link
	framework   string
	precision   spec.Precision
	card        *perfmodel.Card // best fitted performance model, nil if there is none
}

// resolveSubject finds the model and accelerator a question names, in the
// catalog or in the store. A name that fitted performance models are known under
// wins over the catalog's.
func resolveSubject(c *cli.Context) (subject, error) {
	var s subject
	for _, f := range []string{"model", "accelerator"} {
		if c.String(f) == "" {
			return s, usagef("%s: --%s is missing; pacer ls %ss lists the known ones", c.Command.Name, f, f)
		}
	}
	a, ownMachine, err := findAccelerator(c, c.String("accelerator"))
	if err != nil {
		return s, err
	}
	s.accelerator = a
	if s.node, err = nodeFlag(c, a); err != nil {
		return s, err
	}
	s.link = s.node.Link
	m, ownModel, unknown := findModel(c, c.String("model"))
	name := c.String("model")
	if ownModel {
		name = m.Name
	}
	s.model = m
	if s.card, err = bestCard(c, name, a.Name); err != nil {
		return s, err
	}
	if s.card == nil && unknown != nil {
		return s, unknown
	}
	if ownMachine || ownModel {
		if err := s.measuredAt(c, ownMachine); err != nil {
			return s, err
		}
	}
	if s.card != nil {
		err = s.fromMeasurements(c)
	}
	if f := c.String("framework"); f != "" {
		s.framework = f
	}
	return s, err
}

// nodeFlag returns the machine of --node, else the usual one of a.
func nodeFlag(c *cli.Context, a spec.Accelerator) (spec.Node, error) {
	name := c.String("node")
	if name == "" {
		return nodeOf(a), nil
	}
	n, err := catalog.Node(name)
	if err == nil && n.Accelerator != "" && n.Accelerator != a.Name {
		err = usagef("%s: --node %s has devices of type %s, not %s", c.Command.Name, n.Name, n.Accelerator, a.Name)
	}
	return n, err
}

func nodeOf(a spec.Accelerator) spec.Node {
	if n, ok := catalog.NodeFor(a.Name); ok {
		return n
	}
	return spec.Node{Name: "generic", Accelerator: a.Name, Devices: 8}
}

// bestCard returns the card with the smallest held-out error among those of
// the model and accelerator (of --family when one is asked for), or nil. Left to
// choose, it takes only models that beat the analytic one where both were
// scored.
func bestCard(c *cli.Context, model, accelerator string) (*perfmodel.Card, error) {
	reg, err := openRegistry(c)
	if err != nil {
		return nil, err
	}
	want := c.String("family")
	if want == "analytic" {
		return nil, nil
	}
	cards, err := reg.List()
	if err != nil { // the cards that can be read are there all the same
		fmt.Fprintln(c.App.ErrWriter, "warning:", err)
	}
	var best *perfmodel.Card
	for i, k := range cards {
		if !strings.EqualFold(k.Model, model) || k.Accelerator != accelerator || want != "auto" && k.Family != want {
			continue
		}
		if want == "auto" && !k.BeatsUnfitted() {
			continue
		}
		if best == nil || k.MAPE < best.MAPE {
			best = &cards[i]
		}
	}
	if best == nil && want != "auto" {
		fam, err := family.Lookup(want)
		if err != nil {
			return nil, usagef("%w", err)
		}
		if fam.Unfitted == nil {
			return nil, noCard(cards, want, model, accelerator)
		}
	}
	return best, nil
}

// noCard says which fitted models there are instead.
func noCard(cards []perfmodel.Card, fam, model, accelerator string) error {
	var known []string
	for _, k := range cards {
		if k.Family == fam {
			known = append(known, k.Key.String())
		}
	}
	slices.Sort(known)
	hint := "none yet: run pacer fit --family " + fam
	if len(known) > 0 {
		hint = strings.Join(known, "; ")
	}
	return &exitError{exitNoAnswer, fmt.Errorf("no %s model is fitted for %s on %s (fitted: %s)", fam, model, accelerator, hint)}
}

// fromMeasurements fills s from the stored measurements of its card: the model
// as they describe it, and what they all have in common.
func (s *subject) fromMeasurements(c *cli.Context) error {
	rows, err := storedRows(c, store.Filter{Models: []string{s.card.Model}, Accelerators: []string{s.card.Accelerator}})
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return fmt.Errorf("%s has a fitted model but no measurement in the store: fit again", s.card.Key)
	}
	s.model = rows[0].Config.Model
	if known, err := catalog.Model(s.model.Name); err == nil && s.model.SeqLen == 0 {
		s.model.SeqLen = known.SeqLen // a source that does not print it
	}
	s.seqLen = common(rows, func(c spec.Config) int { return c.SeqLen })
	s.framework = common(rows, func(c spec.Config) string { return c.Framework })
	s.precision = common(rows, func(c spec.Config) spec.Precision { return c.Plan.Precision })
	if link := common(rows, func(c spec.Config) spec.Link { return c.Link }); link != (spec.Link{}) && !c.IsSet("node") {
		s.link = link
	}
	return nil
}

// common returns what all rows agree on, zero if they do not.
func common[T comparable](rows []spec.Measurement, of func(spec.Config) T) T {
	v := of(rows[0].Config)
	for _, m := range rows[1:] {
		if of(m.Config) != v {
			var none T
			return none
		}
	}
	return v
}

// predictor returns the performance model that answers for s: the fitted one
// if there is one, else the family asked for as it is, else the analytic.
func (s subject) predictor(c *cli.Context) (perfmodel.Predictor, error) {
	if s.card == nil {
		return unfitted(s.family(c))
	}
	reg, err := openRegistry(c)
	if err != nil {
		return nil, err
	}
	fitted, _, err := reg.Get(s.card.Key, s.card.Family)
	if err != nil && c.String("family") == "auto" {
		fmt.Fprintf(c.App.ErrWriter, "warning: %v; answered by the analytic model, pacer fit --family %s renews it\n", err, s.card.Family)
		return analytic()
	}
	return fitted, err
}

// family names the kind of performance model that answers for s.
func (s subject) family(c *cli.Context) string {
	switch want := c.String("family"); {
	case s.card != nil:
		return s.card.Family
	case want != "auto":
		return want
	}
	return "analytic"
}

func analytic() (perfmodel.Predictor, error) { return unfitted("analytic") }

// unfitted returns a family that predicts without measurements.
func unfitted(name string) (perfmodel.Predictor, error) {
	fam, err := family.Lookup(name)
	if err != nil {
		return nil, err
	}
	if fam.Unfitted == nil {
		return nil, fmt.Errorf("family %s cannot predict without measurements", name)
	}
	return fam.Unfitted, nil
}

// questionFlags are shared by predict, plan and curve.
func questionFlags() []cli.Flag {
	return append(interconnectFlags(),
		&cli.StringFlag{Name: "model", Aliases: []string{"m"}, Usage: "`MODEL` to train, see pacer ls models"},
		&cli.StringFlag{Name: "accelerator", Aliases: []string{"a"}, Usage: "`TYPE` of device, see pacer ls accelerators"},
		&cli.IntFlag{Name: "global-batch", Aliases: []string{"b"}, Usage: "`SAMPLES` per optimizer step", DefaultText: "none"},
		&cli.IntFlag{Name: "seq", Usage: "`TOKENS` per sample", DefaultText: "the model's own"},
		&cli.IntFlag{Name: "per-node", Usage: "`DEVICES` per node", DefaultText: "those of the accelerator's usual node, see pacer ls nodes"},
		&cli.StringFlag{Name: "node", Usage: "`TYPE` of machine the devices are in, see pacer ls nodes", DefaultText: "the accelerator's usual one"},
		&cli.StringFlag{Name: "framework", Usage: "training `STACK`, such as Megatron-LM, FSDP, pacer-torch", DefaultText: "that of the measurements, else today's Megatron Core"},
		&cli.StringFlag{Name: "precision", Usage: "`FORMAT` of the multiplications: fp32 tf32 fp16 bf16 fp8 fp4", DefaultText: "that of the measurements, else bf16, else fp16"},
		&cli.StringFlag{Name: "family", Value: "auto", Usage: "`FAMILY` of performance model; auto: one fitted to the model here that beats the analytic one on held-out rows, else the analytic one; with predict --in: hybrid"},
	)
}

// question is a planning question as asked for: what, and whom to ask.
type question struct {
	planner.Request
	planner   *planner.Planner
	predictor perfmodel.Predictor
	family    string // of predictor
}

// newQuestion reads the question flags; the device count is the caller's.
func newQuestion(c *cli.Context) (question, error) {
	if err := checkOutput(c); err != nil {
		return question{}, err
	}
	s, err := resolveSubject(c)
	if err != nil {
		return question{}, err
	}
	r, err := request(c, s)
	if err != nil {
		return question{}, err
	}
	p, err := s.predictor(c)
	if err != nil {
		return question{}, err
	}
	return question{Request: r, planner: planner.New(p, planner.Options{}), predictor: p, family: s.family(c)}, nil
}

// request builds the planner's request from the question flags.
func request(c *cli.Context, s subject) (planner.Request, error) {
	r := planner.Request{
		Model: s.model, SeqLen: s.seqLen, Accelerator: s.accelerator, Link: s.link, Framework: s.framework,
		Precision: s.precision, PerNode: s.node.Devices, NodeHostBytes: s.node.HostBytes, GlobalBatch: c.Int("global-batch"),
	}
	if !c.IsSet("global-batch") {
		return r, usagef("%s: --global-batch is missing: how many samples per optimizer step?", c.Command.Name)
	}
	if err := inRange(c, "global-batch", r.GlobalBatch, 1<<24); err != nil {
		return r, err
	}
	if c.IsSet("seq") {
		r.SeqLen = c.Int("seq")
		if err := inRange(c, "seq", r.SeqLen, 1<<24); err != nil {
			return r, err
		}
	}
	if c.IsSet("per-node") {
		r.PerNode = c.Int("per-node")
		if err := inRange(c, "per-node", r.PerNode, 1<<20); err != nil {
			return r, err
		}
		share := float64(r.PerNode) / float64(s.node.Devices) // of a machine like the usual one
		r.NodeHostBytes *= share
		r.Link.InterBps *= share
	}
	given, err := readLinkFlags(c)
	if err != nil {
		return r, err
	}
	given.apply(&r.Link)
	if p := spec.Precision(c.String("precision")); p != "" {
		if err := checkPrecision(p, s.accelerator); err != nil {
			return r, err
		}
		r.Precision = p
	}
	return r, nil
}

// checkPrecision reports a format that is unknown, or that the accelerator has
// no rate for.
func checkPrecision(p spec.Precision, a spec.Accelerator) error {
	if !slices.Contains(spec.Precisions(), p) {
		return usagef("precision %q is not one of %v", p, spec.Precisions())
	}
	if has := a.Formats(); len(has) > 0 && !slices.Contains(has, p) {
		return &exitError{exitNoAnswer, fmt.Errorf("%s does not multiply in %s; it has %v", a.Name, p, has)}
	}
	return nil
}

func inRange(c *cli.Context, flag string, n, most int) error {
	if n < 1 || n > most {
		return usagef("%s: --%s %d is not in 1..%d", c.Command.Name, flag, n, most)
	}
	return nil
}

// devicesFlag reads a device count.
func devicesFlag(c *cli.Context, name string) (int, error) {
	if !c.IsSet(name) {
		return 0, usagef("%s: --%s is missing", c.Command.Name, name)
	}
	return c.Int(name), inRange(c, name, c.Int(name), 1<<20)
}
