package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// batchRows is how many rows are written, synced and acknowledged together.
const batchRows = 128

// Result counts the rows of an import. It is the JSON of pacer import.
type Result struct {
	Source    string `json:"source"`
	Rows      int    `json:"rows"`      // usable rows read
	Added     int    `json:"added"`     // new in the store
	Updated   int    `json:"updated"`   // known, with other descriptive figures
	Unchanged int    `json:"unchanged"` // already stored
	Warnings  int    `json:"warnings"`  // rows stored although they are in doubt or break a rule
	Bad       int    `json:"bad"`       // rows that could not be used
	Forgotten int    `json:"forgotten"` // rows not stored since the user of the store had them forgotten
	// Sources are the sources of the rows, by name.
	Sources []string `json:"sources"`
}

// Store writes rows into to in acknowledged batches, and closes it. log receives the progress, rows that cannot
// be used, and warnings. name is the name of the import, total the number of its rows, 0 =
// unknown.
func Store(ctx context.Context, to *datadir.Rows, name string, total int, rows iter.Seq2[spec.Measurement, error], log io.Writer) (Result, error) {
	if to.Served != nil {
		fmt.Fprintf(log, "import %s: rows are posted to pacer serve at %s\n", name, to.Served.Address())
	}
	im := &importer{ctx: ctx, to: to, origins: to.Origins(), log: log, bar: console.NewBar(log, "import "+name, total),
		res: Result{Source: name, Sources: []string{}}, warned: map[string]warnedRows{}}
	err := im.read(rows)
	im.bar.Finish()
	im.warnSummary()
	return im.res, errors.Join(err, to.Close())
}

// importer is one import under way.
type importer struct {
	ctx     context.Context
	to      *datadir.Rows
	origins *store.Origins
	log     io.Writer
	bar     *console.Bar
	batch   []spec.Measurement
	res     Result
	warned  map[string]warnedRows // by warning, to print each once
	order   []string              // of the warnings
}

// warnedRows are the rows with one warning.
type warnedRows struct {
	kind  string // kept or forgotten
	n     int
	first string // origin
}

// maxReported bounds the rows reported one by one.
const maxReported = 20

// read stores seq; it stops only when the source or the store fails as a whole.
func (im *importer) read(seq iter.Seq2[spec.Measurement, error]) error {
	for m, err := range seq {
		if cerr := im.ctx.Err(); cerr != nil {
			return fmt.Errorf("stopped after %d rows, which are stored: %w", im.res.Added+im.res.Updated+im.res.Unchanged, cerr)
		}
		var row *datasets.RowError
		switch {
		case errors.As(err, &row):
			im.reportBad(err)
			continue
		case err != nil:
			return errors.Join(fmt.Errorf("import %s: %w", im.res.Source, err), im.flush())
		}
		if err := rowfile.Check(&m); err != nil {
			im.reportBad(fmt.Errorf("%s: %w", m.Origin, err))
			continue
		}
		im.res.Rows++
		if at, found := slices.BinarySearch(im.res.Sources, m.Source); !found {
			im.res.Sources = slices.Insert(im.res.Sources, at, m.Source)
		}
		if err := im.find(&m); err != nil {
			return errors.Join(err, im.flush())
		}
		if im.batch = append(im.batch, m); len(im.batch) == batchRows {
			if err := im.flush(); err != nil {
				return err
			}
		}
	}
	return im.flush()
}

// find takes over the origin under which a row is stored already, and counts what is unusual about it.
func (im *importer) find(m *spec.Measurement) error {
	origin, mark, err := im.origins.Stored(im.ctx, *m)
	if err != nil {
		return err
	}
	m.Origin = origin
	if mark != nil {
		im.note(forgotten, fmt.Sprintf("not stored, forgotten on %s by %s (%s); pacer store release --source %q admits them again",
			mark.At.Format("2006-01-02 15:04 MST"), mark.By, cmp.Or(mark.Reason, "no reason given"), m.Source), m.Origin)
		return nil
	}
	im.warn(*m)
	return nil
}

func (im *importer) flush() error {
	counts, err := im.to.PutAll(im.ctx, im.batch...)
	if err != nil {
		return err
	}
	im.batch = im.batch[:0]
	im.res.Added += counts.Added
	im.res.Updated += counts.Updated
	im.res.Unchanged += counts.Unchanged
	im.res.Forgotten += counts.Forgotten
	im.bar.Set(im.res.Rows + im.res.Bad)
	im.bar.Acknowledge(im.res.Added + im.res.Updated + im.res.Unchanged)
	return nil
}

func (im *importer) reportBad(err error) {
	im.res.Bad++
	if im.res.Bad <= maxReported {
		im.bar.Println("skipped: " + err.Error())
	}
}

// warn counts a row that is doubted or breaks a legality rule.
func (im *importer) warn(m spec.Measurement) {
	var texts []string
	quarantined := m.Quarantined()
	m, reason := m.Unquarantine()
	if quarantined {
		texts = append(texts, "quarantined in the file ("+cmp.Or(reason, "no reason given")+"), and here if they are new")
	}
	if reason := m.DoubtReason(); reason != "" {
		texts = append(texts, "in doubt: "+reason)
	}
	if err := m.Config.Check(); err != nil {
		texts = append(texts, err.Error())
	}
	for _, text := range texts {
		im.note(kept, text, m.Origin)
	}
	im.res.Warnings += min(len(texts), 1)
}

// kept and forgotten begin the warnings of rows that are stored and of rows that are not.
const kept, forgotten = "kept", "forgotten"

// note counts a row with a warning. Those of forgotten rows come first.
func (im *importer) note(kind, text, origin string) {
	rows := im.warned[text]
	if rows.n++; rows.n == 1 {
		rows.kind, rows.first = kind, origin
		at := len(im.order)
		if kind == forgotten {
			at = 0
		}
		im.order = slices.Insert(im.order, at, text)
	}
	im.warned[text] = rows
}

func (im *importer) warnSummary() {
	if n := im.res.Bad - maxReported; n > 0 {
		fmt.Fprintf(im.log, "skipped: %d more rows\n", n)
	}
	for i, text := range im.order {
		if i == maxReported {
			fmt.Fprintf(im.log, "%s: %d more kinds of warnings\n", kept, len(im.order)-i)
			break
		}
		rows := im.warned[text]
		fmt.Fprintf(im.log, "%s: %d row(s), first %s: %s\n", rows.kind, rows.n, rows.first, text)
	}
}

// printSources prints the sources of the rows unless there is one, with the name of the import.
func (r *Result) printSources(w io.Writer) {
	if s := r.Sources; len(s) == 1 && s[0] != r.Source {
		fmt.Fprintf(w, "import %s: the source of these rows is %s, as in pacer fit --source %s\n", r.Source, s[0], s[0])
	} else if len(s) > 1 {
		fmt.Fprintf(w, "import %s: rows of %d sources, for --source: %s\n", r.Source, len(s), strings.Join(s, ", "))
	}
}
