package plan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Further categories of flags.
const (
	categorySpace     = "Search space"
	categoryObjective = "Objective"
)

// requestFlags are shared by predict, plan, curve and fit-check.
func requestFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "model", Aliases: []string{"m"}, Category: command.CategoryModel,
			Usage: "train `MODEL`, see pacer ls models; or a Hugging Face config.json; or your own model as FILE.yaml or KEY=VALUE,..."},
		&cli.IntFlag{Name: "global-batch", Aliases: []string{"b"}, Usage: "train `SAMPLES` per optimizer step", DefaultText: "none", Category: command.CategoryModel},
		&cli.IntFlag{Name: "seq", Usage: "train samples of `TOKENS`", DefaultText: "the model's own", Category: command.CategoryModel},
		&cli.IntFlag{Name: "packed", Usage: "train samples of packed documents of `TOKENS` in the mean, which attend to themselves only", DefaultText: "a sample is one document", Category: command.CategoryModel},
		&cli.Float64Flag{Name: "imbalance", Usage: "train a mixture of experts where the busiest device receives `FACTOR` times the mean of tokens", DefaultText: "1: even", Category: command.CategoryModel},
		&cli.StringFlag{Name: "adapter", Usage: "train an `ADAPTER` and freeze the weights: KIND:RANK or KIND:RANK:MODULES with lora, qlora or dora and qkv, o, mlp joined by +, such as lora:16:qkv+o+mlp", DefaultText: "none: train all weights", Category: command.CategoryModel},
		&cli.StringFlag{Name: "framework", Usage: "predict for training `STACK`, such as Megatron Core@0.13, see pacer ls stacks", DefaultText: "that of the measurements, else any stack plausible for the device and date", Category: command.CategoryModel},
		&cli.StringSliceFlag{Name: "stack", Usage: "predict for a training stack with `PART=VALUE`, such as launch=eager, see pacer ls parts; may be repeated", DefaultText: "the parts of --framework", Category: command.CategoryModel},
		&cli.StringFlag{Name: "date", Usage: "predict for a training stack of `DATE` or before, such as 2024-07, where --framework states no release", DefaultText: "none", Category: command.CategoryModel},
		&cli.StringFlag{Name: "precision", Usage: "multiply in `FORMAT`: fp32 tf32 fp16 bf16 fp8 mxfp8 fp8-rowwise fp4", DefaultText: "that of the measurements, else bf16, else fp16", Category: command.CategoryModel},
		&cli.StringFlag{Name: "family", Value: query.Auto, Usage: "predict by `FAMILY` of performance model; auto: one fitted to the model here that beats the analytic one on held-out rows, else the analytic one; with predict --in: hybrid", Category: command.CategoryModel},
		&cli.StringFlag{Name: "accelerator", Aliases: []string{"a"}, Usage: "use devices of `TYPE`, see pacer ls accelerators; or your own as FILE.yaml, see pacer ls accelerators --template", Category: command.CategoryHardware},
		&cli.StringFlag{Name: "node", Usage: "use machines of `TYPE`, see pacer ls nodes", DefaultText: "the accelerator's usual one", Category: command.CategoryHardware},
		&cli.IntFlag{Name: "per-node", Usage: "use `DEVICES` per node", DefaultText: "those of the accelerator's usual node, see pacer ls nodes", Category: command.CategoryHardware},
		command.GroupFlag("network", "replace figures of the interconnect", "inter-node-gbps=400,intra-node-gbytes=450", command.CategoryHardware),
	}
}

// spaceFlag narrows or widens the plans that are proposed.
func spaceFlag() cli.Flag {
	return command.GroupFlag("space", "narrow or widen the plans considered", "zero=0+1,recompute=none,max-micro-batch=2", categorySpace)
}

// batchRangeFlag leaves the global batch free.
func batchRangeFlag() cli.Flag {
	return &cli.StringFlag{Name: "batch-range", Usage: "choose the global batch in `MIN-MAX` samples, instead of --global-batch", DefaultText: "none", Category: categoryObjective}
}

// planRequest is a request and the planner that answers it.
type planRequest struct {
	planner.Request
	planner   *planner.Planner
	predictor perfmodel.Predictor
	family    string          // of predictor
	migration query.Migration // whether a running job should migrate to the best plan
}

// readRequest reads requestFlags and --devices.
func readRequest(c *cli.Context) (planRequest, error) {
	return resolveOn(c, c.String("accelerator"), "devices", nil)
}

// resolveOn looks up the names in requestFlags, but for the accelerator's: for one plan, or if fixed is nil for the
// devices of a flag.
func resolveOn(c *cli.Context, accelerator, devices string, fixed *query.FixedPlan) (planRequest, error) {
	r, err := requestOf(c)
	if err == nil && fixed == nil && !c.IsSet("global-batch") && !c.IsSet("max-batch") {
		err = fail.Usagef("%s: --global-batch is missing: how many samples per optimizer step?", c.Command.Name)
	}
	if err != nil {
		return planRequest{}, err
	}
	r.Accelerator = accelerator
	if query.IsChipFile(accelerator) {
		if r.Chip, err = query.ReadChip(accelerator); err != nil {
			return planRequest{}, command.ForVerb(c, err)
		}
	}
	d, err := datadir.Of(c).Resolver()
	if err != nil {
		return planRequest{}, err
	}
	found, err := d.Resolve(c.Context, r)
	if err == nil && fixed != nil {
		err = found.Fix(&r, *fixed)
	}
	if err != nil {
		return planRequest{}, hintDirectory(c, command.ForVerb(c, err))
	}
	if fixed == nil {
		n, err := devicesFlag(c, devices)
		if err != nil {
			return planRequest{}, err
		}
		if err := found.On(&r, n); err != nil {
			return planRequest{}, command.ForVerb(c, err)
		}
	}
	space, err := readSpace(c)
	if err != nil {
		return planRequest{}, err
	}
	return planRequest{Request: found.Request, planner: planner.New(found.Predictor, planner.Options{Space: space}), predictor: found.Predictor, family: found.Family}, nil
}

// positiveFlags are those of requestFlags that may not be 0.
var positiveFlags = []string{"global-batch", "seq", "packed", "imbalance", "per-node", "inter-node-gbps", "intra-node-gbytes"}

// givenRequest reads requestFlags as they are given.
func givenRequest(c *cli.Context) (q query.Request, err error) {
	q = query.Request{
		Model: c.String("model"), Accelerator: c.String("accelerator"), GlobalBatch: c.Int("global-batch"), Seq: c.Int("seq"),
		PerNode: c.Int("per-node"), Node: c.String("node"), Adapter: c.String("adapter"), Packed: c.Int("packed"), Imbalance: c.Float64("imbalance"), Framework: c.String("framework"), Stack: strings.Join(c.StringSlice("stack"), " "), Date: c.String("date"), Precision: c.String("precision"),
		Family: c.String("family"), InterNodeGbps: c.Float64("inter-node-gbps"), IntraNodeGBytes: c.Float64("intra-node-gbytes"),
	}
	if err := q.AssumeStackOf(c.String("emit")); err != nil {
		return q, command.ForVerb(c, err)
	}
	q.Network, err = networkOf(c)
	return q, err
}

// requestOf reads requestFlags.
func requestOf(c *cli.Context) (query.Request, error) {
	q, err := givenRequest(c)
	if err != nil {
		return q, err
	}
	for _, f := range []string{"model", "accelerator"} {
		if c.String(f) == "" && (f != "model" || q.Network.Name == "") {
			return q, fail.Usagef("%s: --%s is missing; pacer ls %ss lists the known ones", c.Command.Name, f, f)
		}
	}
	if err := command.NotZero(c, positiveFlags...); err != nil {
		return q, err
	}
	return q, command.ForVerb(c, q.Check())
}

// looseRequest reads requestFlags. Model, accelerator and batch may be missing.
func looseRequest(c *cli.Context) (query.Request, error) {
	q, err := givenRequest(c)
	if err == nil && query.IsChipFile(q.Accelerator) {
		q.Chip, err = query.ReadChip(q.Accelerator)
		err = command.ForVerb(c, err)
	}
	if err != nil {
		return q, err
	}
	return q, command.NotZero(c, positiveFlags...)
}

// devicesFlag reads a device count.
func devicesFlag(c *cli.Context, name string) (int, error) {
	if !c.IsSet(name) {
		return 0, fail.Usagef("%s: --%s is missing", c.Command.Name, name)
	}
	return c.Int(name), command.InRange(c, name, c.Int(name), query.MaxDevices)
}

// interconnectFlags are the settings of --network, which replace a machine's interconnect.
func interconnectFlags() []cli.Flag {
	return []cli.Flag{
		&cli.Float64Flag{Name: "inter-node-gbps", Usage: "network of one node in Gbit/s, one direction, all NICs", DefaultText: "that of the usual node"},
		&cli.Float64Flag{Name: "intra-node-gbytes", Usage: "link between the devices of a node in GB/s per device, one direction", DefaultText: "that of the usual node"},
	}
}

// spaceFlags are the settings of --space.
func spaceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "zero", Usage: "ZeRO stages considered", DefaultText: "0+1+2+3"},
		&cli.StringFlag{Name: "recompute", Usage: "recompute modes considered", DefaultText: "none+selective+full"},
		&cli.StringFlag{Name: "offload", Usage: "offload modes considered", DefaultText: "none+optimizer+params"},
		&cli.StringFlag{Name: "schedule", Usage: "pipeline schedules considered: 1f1b gpipe zb-h1 zb-h2 zb-v dualpipe-v", DefaultText: "1f1b, interleaved too"},
		&cli.StringFlag{Name: "precisions", Usage: "formats considered, such as bf16+fp8; the device's count", DefaultText: "the one of --precision"},
		&cli.IntFlag{Name: "max-micro-batch", Usage: "largest micro-batch in samples", DefaultText: "no bound"},
		&cli.BoolFlag{Name: "tp-across-nodes", Usage: "lets tensor parallel groups span nodes that no scale-up link joins"},
	}
}

// readSpace reads spaceFlags; without any, or in a command that has none, the
// space is the default one.
func readSpace(c *cli.Context) (planner.Space, error) {
	s, err := spaceOf(c)
	if err != nil {
		return nil, err
	}
	e, err := s.Enumerate(c.String("precision"))
	return e, command.ForVerb(c, err)
}

// spaceOf reads spaceFlags.
func spaceOf(c *cli.Context) (query.Space, error) {
	if n := c.Int("max-micro-batch"); c.IsSet("max-micro-batch") && n < 1 {
		return query.Space{}, fail.Usagef("%s: --max-micro-batch %d is below 1", c.Command.Name, n)
	}
	s := query.Space{
		Recompute: command.List(c, "recompute"), Offload: command.List(c, "offload"), Schedule: command.List(c, "schedule"), Precisions: command.List(c, "precisions"),
		MaxMicroBatch: c.Int("max-micro-batch"), TPAcrossNodes: c.Bool("tp-across-nodes"),
	}
	for _, text := range command.List(c, "zero") {
		stage, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return s, fail.Usagef("%s: --zero %s is not one of 0 1 2 3", c.Command.Name, text)
		}
		s.ZeRO = append(s.ZeRO, stage)
	}
	return s, nil
}

// objectiveFlags choose the objective of plans.
func objectiveFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "objective", Usage: "choose by `NAME[:KEY=VALUE...]`: throughput; cost, least device time a sample; min-devices:target=SAMPLES/S; goodput:noise-scale=SAMPLES, throughput x statistical efficiency", DefaultText: "throughput", Category: categoryObjective},
		&cli.IntFlag{Name: "min-devices", Usage: "try from `N` to --devices devices", DefaultText: "--devices; 1 with --objective cost and min-devices", Category: categoryObjective},
		batchRangeFlag(),
	}
}

// objectiveParts are the settings of --objective.
func objectiveParts() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "objective"},
		&cli.Float64Flag{Name: "target", Usage: "samples/s that min-devices must reach", DefaultText: "none"},
		&cli.Float64Flag{Name: "price-per-hour", Usage: "price of one device, in any currency", DefaultText: "1: costs are in device-hours"},
		&cli.Float64Flag{Name: "noise-scale", Usage: "gradient noise scale in samples, for goodput (McCandlish et al. 2018)", DefaultText: "none"},
		&cli.IntFlag{Name: "initial-batch", Usage: "global batch in samples that the hyperparameters are for", DefaultText: "the least of --batch-range"},
		&cli.Float64Flag{Name: "risk", Usage: "compare plans by the speed they fall short of with this probability; 0.05 is the lower bound of the 90 % interval", DefaultText: "the median"},
	}
}

// batchRangeParts are the settings of --batch-range.
func batchRangeParts() []cli.Flag {
	return []cli.Flag{&cli.IntFlag{Name: "min-batch"}, &cli.IntFlag{Name: "max-batch"}}
}

// readGoal reads the objective into r.
func readGoal(c *cli.Context, r *planner.Request) error {
	if err := command.NotZero(c, "min-devices", "target", "price-per-hour", "min-batch", "max-batch", "noise-scale", "initial-batch", "risk"); err != nil {
		return err
	}
	g := query.Goal{
		Objective: c.String("objective"), Target: c.Float64("target"), MinDevices: c.Int("min-devices"), PricePerHour: c.Float64("price-per-hour"),
		BatchRange: query.BatchRange{MinBatch: c.Int("min-batch"), MaxBatch: c.Int("max-batch"), NoiseScale: c.Float64("noise-scale"), InitialBatch: c.Int("initial-batch"), Risk: c.Float64("risk")},
	}
	return command.ForVerb(c, g.Set(r))
}

// moveFlags describe the migration of a running job.
func moveFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "from", Usage: "say whether a job that runs as `PLAN` should migrate to the best plan", DefaultText: "the job does not run yet", Category: "Migration"},
		command.GroupFlag("move", "describe the migration", "remaining=1e6,restart-s=60", "Migration"),
	}
}

// moveParts are the settings of --move.
func moveParts() []cli.Flag {
	return []cli.Flag{
		&cli.Float64Flag{Name: "remaining", Usage: "samples still to be trained", DefaultText: "none"},
		&cli.StringFlag{Name: "to", Usage: "the plan to migrate to, with + for commas", DefaultText: "the best one"},
		&cli.Float64Flag{Name: "restart-s", Usage: "seconds of a restart beside reading and writing the checkpoint", DefaultText: "30"},
		&cli.Float64Flag{Name: "storage-gbytes", Usage: "checkpoint storage in GB/s for the whole job", DefaultText: "2 a node"},
		&cli.BoolFlag{Name: "in-place", Usage: "devices exchange their state over their links, without a checkpoint"},
	}
}

// readMigration reads moveFlags.
func readMigration(c *cli.Context) (query.Migration, error) {
	g := query.Migration{From: c.String("from"), To: c.String("to"), Remaining: c.Float64("remaining"), RestartS: c.Float64("restart-s"),
		StorageGBytes: c.Float64("storage-gbytes"), InPlace: c.Bool("in-place")}
	if err := command.NotZero(c, "remaining", "restart-s", "storage-gbytes"); err != nil {
		return g, err
	}
	err := g.Check()
	var bad *query.FieldError
	if errors.As(err, &bad) && bad.Err != nil {
		return g, fail.Usagef("%s: %s: %w", c.Command.Name, command.FlagOf(bad.Field), bad.Err)
	}
	return g, command.ForVerb(c, err)
}

// move compares the running plan with the best plan, or with setting to of --move; nil
// without --from.
func (q *planRequest) move(c *cli.Context, best spec.Config) (*query.MoveRow, error) {
	m, err := q.migration.Move(best)
	if m == nil || err != nil {
		return nil, err
	}
	if a, b := m.From.Plan.GlobalBatch(), m.To.Plan.GlobalBatch(); a != b {
		fmt.Fprintf(c.App.ErrWriter, "warning: the plans have global batches of %d and %d; samples are compared, not their statistical efficiency\n", a, b)
	}
	moving, err := q.planner.Migrate(c.Context, *m)
	if err != nil {
		return nil, err
	}
	row := query.NewMoveRow(m, moving)
	return &row, nil
}
