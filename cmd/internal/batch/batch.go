package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Options are the choices of a run.
type Options struct {
	Family    string // of performance models; auto is family.Default
	Link      query.Link
	Explain   bool
	Calibrate string // file of measured rows; "" = none
	// Open opens a file of rows and returns its name in errors.
	Open func(path string) (io.ReadCloser, string, error)
	// Resolver looks up accelerators that the catalog lacks.
	Resolver func() (*query.Resolver, error)
	Log      io.Writer
	// Verb is the command that reads the rows, named in messages; "" = predict.
	Verb string
}

// Opener opens files of rows for a verb; - is stdin. It returns the name of the file in errors.
func Opener(verb string, stdin io.Reader) func(path string) (io.ReadCloser, string, error) {
	return func(path string) (io.ReadCloser, string, error) {
		if path == "-" {
			return io.NopCloser(stdin), "standard input", nil
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, "", fail.Usagef("%s: %w", verb, err)
		}
		return f, path, nil
	}
}

// Run predicts the rows of one file.
type Run struct {
	Options
	ctx     context.Context
	p       perfmodel.Predictor
	memory  *memory.Calibration
	explain query.Explainer // nil unless requested
	log     *rowLog
	seen    calibrated
	drifts  []perfmodel.Drift // of the calibration rows
	parts   storedParts
	stacks  map[string]bool // names of the rows' training stacks
	rows    int
	refused int
	failed  bool // some row of the calibration file could not be used
}

// beside returns the folder of a table, nil if it is not read from a file.
func beside(table io.Reader, path string) fs.FS {
	if _, file := table.(*os.File); file {
		return os.DirFS(filepath.Dir(path))
	}
	return nil
}

// rowLog reports rows on standard error, the first of them one by one.
type rowLog struct {
	w     io.Writer
	verb  string
	bar   *console.Bar
	count map[string]int  // rows of each kind
	once  map[string]bool // lines printed
}

// note prints a line about the whole run, once.
func (l *rowLog) note(line string) {
	if line != "" && !l.once[line] && len(l.once) < maxReported {
		l.once[line] = true
		l.bar.Println(l.verb + ": " + line)
	}
}

// header prints the warnings about the header of a file.
func (l *rowLog) header(name string, row *datasets.Row) {
	for _, text := range row.Header {
		l.note(name + ": " + text)
	}
}

func newRowLog(w io.Writer, verb string) *rowLog {
	return &rowLog{w: w, verb: verb, bar: console.NewBar(w, verb, 0), count: map[string]int{}, once: map[string]bool{}}
}

// report prints a line about a row, the first of each kind.
func (l *rowLog) report(kind, line string) {
	if l.count[kind]++; l.count[kind] <= maxReported {
		l.bar.Println(kind + ": " + line)
	}
}

func (l *rowLog) finish() {
	l.bar.Finish()
	for _, kind := range []string{rowLeftOut, rowTakenAsIs, rowContradicted, rowNotPredicted} {
		if n := l.count[kind] - maxReported; n > 0 {
			fmt.Fprintf(l.w, "%s: %d more rows\n", kind, n)
		}
	}
}

// maxReported bounds the rows reported one by one.
const maxReported = 20

// Kinds of reported rows.
const (
	rowLeftOut      = "not calibrated on"
	rowTakenAsIs    = "used for calibration, known by name only"
	rowContradicted = "used for calibration, contradicted by the other rows"
	rowNotPredicted = "not predicted"
)

// Verdict is the error of a run in which some rows could not be used.
func (r *Run) Verdict(name string) error {
	switch {
	case r.refused > 0:
		return fail.Partialf("predict: %d of %d rows of %s could not be predicted, see above", r.refused, r.rows, name)
	case r.failed:
		return fail.Partialf("predict: rows of %s could not be used, see above", r.Calibrate)
	}
	return nil
}

// New prepares a run: it finds the performance model and calibrates it. The caller calls
// Finish on the run, which is nil after an error.
func New(ctx context.Context, o Options) (*Run, error) {
	b := newRun(ctx, o)
	if err := b.prepare(); err != nil {
		b.Finish()
		return nil, err
	}
	return b, nil
}

func newRun(ctx context.Context, o Options) *Run {
	o.Verb = cmp.Or(o.Verb, "predict")
	log := newRowLog(o.Log, o.Verb)
	return &Run{Options: o, ctx: ctx, log: log, seen: calibratedTo(nil), stacks: map[string]bool{}, parts: storedParts{o.Resolver, map[string]storedPart{}}}
}

// prepare finds the performance model and calibrates it.
func (r *Run) prepare() error {
	if r.Family == query.Auto {
		r.Family = family.Default
	}
	fam, err := family.Lookup(r.Family)
	if err != nil {
		return fail.Usagef("predict: %w", err)
	}
	r.memory = memory.Shipped()
	if r.Calibrate != "" {
		r.p, err = r.calibrate(fam)
	} else if r.p = fam.Unfitted; fam.Unfitted == nil {
		err = fail.Usagef("predict: family %s predicts nothing without measurements, give it some with --calibrate", r.Family)
	}
	if err == nil && r.Explain {
		r.explain, err = query.ExplainerOf(r.p, r.Family)
	}
	return err
}

// Finish prints the last notes and ends the progress display.
func (r *Run) Finish() {
	r.log.note(r.seen.otherStacks(r.stacks))
	r.log.finish()
}

// answer is a row of the file with what is predicted of it.
type answer struct {
	row         datasets.Row
	pred        spec.Prediction
	verdict     memory.Verdict // if the memory is known
	err         error          // the reason if there is no prediction
	unknown     string         // a note on names that are not known, if there is a prediction
	drifts      []string       // changes of the site
	misfit      string         // the memory it needs by part, unless it fits
	explanation *query.Explanation
}

// chunkRows is how many rows are read, predicted side by side, and written.
const chunkRows = 4096

// Predict predicts the rows of in and calls put with each in order. Errors call the file name.
func (r *Run) Predict(in io.Reader, name string, put func(*Row) error) error {
	chunk := make([]answer, 0, chunkRows)
	flush := func() error {
		if err := r.answerAll(chunk); err != nil {
			return err
		}
		for i := range chunk {
			if err := r.put(put, &chunk[i], name); err != nil {
				return err
			}
		}
		chunk = chunk[:0]
		return nil
	}
	for row, err := range datasets.PublishedRows(r.ctx, name, in, beside(in, name), false) {
		var bad *datasets.RowError
		if err != nil && !errors.As(err, &bad) {
			return fmt.Errorf("predict: %w", err)
		}
		r.log.header(name, &row)
		if err == nil {
			err = r.parts.complete(r.ctx, &row.Measurement.Config.Accelerator)
		}
		if chunk = append(chunk, answer{row: row, err: err}); len(chunk) == chunkRows {
			if err := flush(); err != nil {
				return err
			}
			r.log.bar.Counted(r.rows)
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if r.rows == 0 {
		return fmt.Errorf("predict: %s has no rows below its header", name)
	}
	return nil
}

// put passes on one answer and reports a row that could not be predicted.
func (r *Run) put(put func(*Row) error, a *answer, name string) error {
	r.rows++
	if a.err != nil {
		r.refused++
		line := a.err.Error()
		var bad *datasets.RowError
		if !errors.As(a.err, &bad) {
			line = fmt.Sprintf("%s:%d: %s: %s", name, a.row.Line, a.row.ID, line)
		}
		r.log.report(rowNotPredicted, line)
	} else {
		r.stacks[stackOf(&a.row.Measurement.Config)] = true
		r.log.note(a.unknown)
	}
	return put(newRow(a, r.Family))
}

// answerAll fills in the predictions of a chunk, on every core. The result does not depend on
// their number.
func (r *Run) answerAll(chunk []answer) error {
	var wg sync.WaitGroup
	n := runtime.GOMAXPROCS(0)
	for k := range n {
		part := chunk[k*len(chunk)/n : (k+1)*len(chunk)/n]
		wg.Go(func() { r.answerPart(part) })
	}
	wg.Wait()
	return r.ctx.Err()
}

func (r *Run) answerPart(part []answer) {
	sites := rowSites{p: r.p, memory: r.memory, seen: &r.seen, drifts: r.drifts, at: map[rowSiteKey]*rowSite{}}
	for i := range part {
		a := &part[i]
		if a.err != nil {
			continue
		}
		c := &a.row.Measurement.Config
		r.Link.Apply(&c.Link)
		if a.row.Mismatch {
			a.err = errors.New(strings.Join(a.row.Against, "; "))
			continue
		}
		site := sites.of(r.ctx, c)
		a.predict(site, c)
		if a.err == nil && r.explain != nil {
			a.explain(r.explain, site.memory)
		}
	}
}

// explain fills in the explanation, if there is one.
func (a *answer) explain(e query.Explainer, m *memory.Estimator) {
	if parts, err := query.Explain(e, m, a.row.Measurement.Config); err == nil {
		a.explanation = &parts
	}
}

// warnings are the warnings about an answer, or the reason why there is none.
func (a *answer) warnings() []string {
	if a.err != nil {
		return []string{a.err.Error()}
	}
	var out []string
	if a.misfit != "" {
		out = append(out, map[memory.Verdict]string{memory.Unsure: "not sure to fit: ", memory.Exceeds: "does not fit: "}[a.verdict]+a.misfit)
	}
	if a.unknown != "" {
		out = append(out, a.unknown)
	}
	out = slices.Concat(out, a.drifts, a.row.Against, a.row.Assumed, query.Texts(a.pred.Warnings))
	if err := a.row.Measurement.Config.Check(); err != nil {
		out = append(out, err.Error())
	}
	return out
}
