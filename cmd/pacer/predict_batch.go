package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// batchFlags are those of predicting rows of a file.
func batchFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "in", Usage: "predict every row of `FILE`, - is standard input", Category: "Rows of a file"},
		&cli.StringFlag{Name: "calibrate", Usage: "calibrate to the measured rows of `FILE` first", Category: "Rows of a file"},
		&cli.StringFlag{Name: "out", Usage: "write predictions to `FILE`, - is standard output", DefaultText: "-", Category: "Rows of a file"},
	}
}

// batchAlso are the other flags that go with --in.
var batchAlso = []string{"in", "calibrate", "out", "family", "explain", "network", "data", "output", "seed", "progress"}

// batch is one run of predict over the rows of a file.
type batch struct {
	c       *cli.Context
	p       perfmodel.Predictor
	family  string // of p
	memory  *memory.Calibration
	explain query.Explainer // nil unless asked for
	link    query.Link
	log     *rowLog
	seen    calibrated
	parts   storedParts
	asked   map[string]bool // training stacks of the rows
	rows    int
	refused int
	failed  bool // some row of the calibration file could not be used
}

// rowLog reports rows on standard error, the first of them one by one.
type rowLog struct {
	w    io.Writer
	bar  *console.Bar
	told map[string]int  // rows of each kind
	once map[string]bool // lines printed
}

// note prints a line about the whole run, once.
func (l *rowLog) note(line string) {
	if line != "" && !l.once[line] && len(l.once) < maxReported {
		l.once[line] = true
		l.bar.Println("predict: " + line)
	}
}

// header notes what is odd about the header of a file.
func (l *rowLog) header(name string, row *datasets.Row) {
	for _, odd := range row.Header {
		l.note(name + ": " + odd)
	}
}

func (l *rowLog) tell(kind, line string) {
	if l.told[kind]++; l.told[kind] <= maxReported {
		l.bar.Println(kind + ": " + line)
	}
}

func (l *rowLog) finish() {
	l.bar.Finish()
	for _, kind := range []string{rowLeftOut, rowNotPredicted} {
		if n := l.told[kind] - maxReported; n > 0 {
			fmt.Fprintf(l.w, "%s: %d more rows\n", kind, n)
		}
	}
}

// Kinds of reported rows.
const (
	rowLeftOut      = "not calibrated on"
	rowNotPredicted = "not predicted"
)

func runPredictRows(c *cli.Context) error {
	if err := checkBatch(c); err != nil {
		return err
	}
	link, err := readLinkFlags(c)
	if err != nil {
		return err
	}
	in, name, err := openIn(c)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := console.Create(strings.TrimPrefix(c.String("out"), "-"))
	if err != nil {
		return err
	}
	b := &batch{c: c, link: link, log: &rowLog{w: c.App.ErrWriter, bar: console.NewBar(c.App.ErrWriter, "predict", 0), told: map[string]int{}, once: map[string]bool{}}, seen: calibratedTo(nil), parts: storedParts{c, map[string]storedPart{}}, asked: map[string]bool{}}
	err = b.prepare()
	write := func(w io.Writer) error { return b.run(in, name, newRowWriter(c, w, b.family)) }
	switch {
	case err != nil:
		err = errors.Join(err, out.Discard())
	case out == nil:
		err = write(c.App.Writer)
	default:
		err = out.Write(write)
	}
	b.log.note(b.seen.otherStacks(b.asked))
	b.log.finish()
	if err != nil {
		return err
	}
	return b.verdict(name)
}

// verdict is the error of a run that some rows could not be used in.
func (b *batch) verdict(name string) error {
	switch {
	case b.refused > 0:
		return fail.Partialf("predict: %d of %d rows of %s could not be predicted, see above", b.refused, b.rows, name)
	case b.failed:
		return fail.Partialf("predict: rows of %s could not be used, see above", b.c.String("calibrate"))
	}
	return nil
}

func checkBatch(c *cli.Context) error {
	for _, f := range c.Command.Flags {
		if name := f.Names()[0]; c.IsSet(name) && !slices.Contains(batchAlso, name) {
			return fail.Usagef("predict: --%s is a question of its own, leave it out with --in: the rows say it", name)
		}
	}
	if c.String("in") == "-" && c.String("calibrate") == "-" {
		return fail.Usagef("predict: --in and --calibrate are both standard input")
	}
	return nil
}

// openIn opens the rows to predict and returns how errors call them.
func openIn(c *cli.Context) (io.ReadCloser, string, error) {
	return openRows(c, c.String("in"))
}

func openRows(c *cli.Context, path string) (io.ReadCloser, string, error) {
	if path == "-" {
		return io.NopCloser(c.App.Reader), "standard input", nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, "", fail.Usagef("predict: %w", err)
	}
	return f, path, nil
}

// prepare finds what predicts, calibrated if there is what to calibrate to.
func (b *batch) prepare() error {
	b.family = b.c.String("family")
	if b.family == "auto" {
		b.family = "hybrid"
	}
	fam, err := family.Lookup(b.family)
	if err != nil {
		return fail.Usagef("predict: %w", err)
	}
	b.memory = memory.Shipped()
	if b.c.String("calibrate") != "" {
		b.p, err = b.calibrate(fam)
	} else if b.p = fam.Unfitted; fam.Unfitted == nil {
		err = fail.Usagef("predict: family %s predicts nothing without measurements, give it some with --calibrate", b.family)
	}
	if err == nil && b.c.Bool("explain") {
		b.explain, err = query.ExplainerOf(b.p, b.family)
		err = command.ForVerb(b.c, err)
	}
	return err
}

// answer is a row of the file with what is predicted of it.
type answer struct {
	row  datasets.Row
	pred spec.Prediction
	mem  float64 // peak on one device, bytes; 0 = not known
	fits bool    // where mem is known
	why  error   // why there is no prediction
	odd  string  // names nothing is known of, where there is one all the same
	need string  // of what it needs how much, where it does not fit
	by   *query.Explanation
}

// chunkRows is how many rows are read, predicted side by side, and written.
const chunkRows = 4096

// run predicts the rows of in, in order.
func (b *batch) run(in io.Reader, name string, w *rowWriter) error {
	chunk := make([]answer, 0, chunkRows)
	flush := func() error {
		if err := b.answerAll(chunk); err != nil {
			return err
		}
		for i := range chunk {
			if err := b.put(w, &chunk[i], name); err != nil {
				return err
			}
		}
		chunk = chunk[:0]
		return nil
	}
	if err := w.begin(b.explain != nil); err != nil {
		return err
	}
	for row, err := range datasets.PublishedRows(b.c.Context, name, in, false) {
		var bad *datasets.RowError
		if err != nil && !errors.As(err, &bad) {
			return fmt.Errorf("predict: %w", err)
		}
		b.log.header(name, &row)
		if err == nil {
			err = b.parts.complete(&row.Measurement.Config.Accelerator)
		}
		if chunk = append(chunk, answer{row: row, why: err}); len(chunk) == chunkRows {
			if err := flush(); err != nil {
				return err
			}
			b.log.bar.Counted(b.rows)
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if b.rows == 0 {
		return fmt.Errorf("predict: %s has no rows below its header", name)
	}
	return w.end()
}

// put writes one answer and reports what could not be predicted.
func (b *batch) put(w *rowWriter, a *answer, name string) error {
	b.rows++
	if a.why != nil {
		b.refused++
		line := a.why.Error()
		var bad *datasets.RowError
		if !errors.As(a.why, &bad) {
			line = fmt.Sprintf("%s:%d: %s: %s", name, a.row.Line, a.row.ID, line)
		}
		b.log.tell(rowNotPredicted, line)
	} else {
		b.asked[a.row.Measurement.Config.Framework] = true
		b.log.note(a.odd)
	}
	return w.put(a)
}

// answerAll fills in the predictions of a chunk, on every core. Which core
// does what changes nothing.
func (b *batch) answerAll(chunk []answer) error {
	var wg sync.WaitGroup
	n := runtime.GOMAXPROCS(0)
	for k := range n {
		part := chunk[k*len(chunk)/n : (k+1)*len(chunk)/n]
		wg.Go(func() { b.answerPart(part) })
	}
	wg.Wait()
	return b.c.Context.Err()
}

func (b *batch) answerPart(part []answer) {
	sites := rowSites{p: b.p, memory: b.memory, seen: &b.seen, at: map[rowSiteKey]*rowSite{}}
	for i := range part {
		a := &part[i]
		if a.why != nil {
			continue
		}
		c := &a.row.Measurement.Config
		b.link.Apply(&c.Link)
		if a.row.Mismatch {
			a.why = errors.New(strings.Join(a.row.Against, "; "))
			continue
		}
		site := sites.of(b.c.Context, c)
		a.predict(site, c)
		if a.why == nil && b.explain != nil {
			a.explain(b.explain, site.memory)
		}
	}
}

// explain fills in the explanation where there is one.
func (a *answer) explain(e query.Explainer, m *memory.Estimator) {
	if by, err := query.Explain(e, m, a.row.Measurement.Config); err == nil {
		a.by = &by
	}
}

// warnings are what should be seen about an answer, or why there is none.
func (a *answer) warnings() []string {
	if a.why != nil {
		return []string{a.why.Error()}
	}
	var out []string
	if a.need != "" {
		out = append(out, "does not fit: "+a.need)
	}
	if a.odd != "" {
		out = append(out, a.odd)
	}
	out = slices.Concat(out, a.row.Against, a.row.Assumed, query.Texts(a.pred.Warnings))
	if err := a.row.Measurement.Config.Check(); err != nil {
		out = append(out, err.Error())
	}
	return out
}
