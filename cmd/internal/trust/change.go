package trust

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Change is a quarantine, forget or release.
type Change struct {
	Selection
	Verb     string // quarantine, forget or release
	Reason   string
	Outliers bool // of the selection, only rows that the others contradict
	DryRun   bool // change nothing
}

// Changed counts the rows of a Change. It is its JSON.
type Changed struct {
	Command   string        `json:"command"`
	DryRun    bool          `json:"dry_run"`
	Rows      int           `json:"rows"`      // selected
	Changed   int           `json:"changed"`   // quarantined, forgotten or released now; of a dry run, those that would be
	Unchanged int           `json:"unchanged"` // they were so before
	Sources   []SourceCount `json:"sources"`
	Touched   []Touched     `json:"touched"` // the changed rows

	keys []spec.Key // of the changed rows
}

// SourceCount counts the rows of one source.
type SourceCount struct {
	Source    string `json:"source"`
	Rows      int    `json:"rows"`
	Changed   int    `json:"changed"`
	Unchanged int    `json:"unchanged"`
}

// Touched is one changed row.
type Touched struct {
	Source      string `json:"source"`
	Origin      string `json:"origin"`
	Model       string `json:"model"`
	Accelerator string `json:"accelerator"`
	Plan        string `json:"plan,omitempty"`   // unknown of a forgotten row
	Reason      string `json:"reason,omitempty"` // of the quarantine or the forgetting that begins or ends
}

// Apply makes the change in the store of d.
func (ch *Change) Apply(ctx context.Context, d *datadir.Dir) (*Changed, error) {
	if err := store.CheckReason(ch.Reason); err != nil {
		return nil, fail.Usagef("%s: --reason: %w", ch.Verb, err)
	}
	var res *Changed
	open := d.Change
	if ch.DryRun {
		open = d.Read
	}
	err := open(func(db *store.DB) (err error) {
		res, err = ch.apply(ctx, d, db)
		return err
	})
	if err == nil && res == nil {
		err = d.NoneOf(store.Filter{}, nil)
	}
	return res, err
}

func (ch *Change) apply(ctx context.Context, d *datadir.Dir, db *store.DB) (*Changed, error) {
	rs, reasons, err := ch.choose(ctx, d, db)
	if err != nil {
		return nil, err
	}
	res := &Changed{Command: ch.Verb, DryRun: ch.DryRun, Rows: len(rs), Sources: []SourceCount{}, Touched: []Touched{}}
	var changed []store.Record // selected rows that the change changes
	var why []string           // of each of changed
	for i := range rs {
		change := ch.changes(&rs[i])
		if res.count(&rs[i], change, reasons[i]); change {
			changed, why = append(changed, rs[i]), append(why, reasons[i])
		}
	}
	switch {
	case ch.Verb == "release" && len(changed) == 0:
		return nil, fail.NoAnswerf("release: none of the %d selected rows is quarantined or forgotten", len(rs))
	case ch.DryRun || len(changed) == 0:
		return res, nil
	}
	return res, ch.write(ctx, db, changed, why)
}

// choose returns the rows to change, and the reason of each.
func (ch *Change) choose(ctx context.Context, d *datadir.Dir, db *store.DB) (rs []store.Record, reasons []string, err error) {
	if ch.Outliers {
		rs, reasons, err = ch.outliers(ctx, d, db)
		for i := range reasons {
			if ch.Reason != "" {
				reasons[i] = ch.Reason + ": " + reasons[i]
			}
		}
		return rs, reasons, err
	}
	if rs, err = ch.of(ctx, d, db); err != nil {
		return nil, nil, err
	}
	if ch.Verb != "release" {
		n := len(rs)
		rs = slices.DeleteFunc(rs, func(r store.Record) bool { return r.Forgotten != nil })
		if len(rs) == 0 {
			return nil, nil, fail.NoAnswerf("%s: all %d selected rows are forgotten already", ch.Verb, n)
		}
	}
	for i := range rs {
		reason := ch.Reason
		if ch.Verb == "release" {
			reason = markReason(&rs[i])
		}
		reasons = append(reasons, reason)
	}
	return rs, reasons, nil
}

// markReason returns why a row is quarantined or forgotten.
func markReason(r *store.Record) string {
	switch {
	case r.Quarantined != nil:
		return r.Quarantined.Reason
	case r.Forgotten != nil:
		return r.Forgotten.Reason
	}
	return ""
}

// changes reports whether ch changes a selected row.
func (ch *Change) changes(r *store.Record) bool {
	switch ch.Verb {
	case "quarantine":
		return r.Quarantined == nil
	case "release":
		return r.Quarantined != nil || r.Forgotten != nil
	}
	return true
}

func (ch *Change) write(ctx context.Context, db *store.DB, rs []store.Record, why []string) (err error) {
	switch ch.Verb {
	case "quarantine":
		_, err = db.Quarantine(ctx, rs, why)
	case "forget":
		_, err = db.Forget(ctx, rs, ch.Reason)
	case "release":
		_, err = db.Release(ctx, rs)
	}
	return err
}

// count adds a selected row.
func (res *Changed) count(r *store.Record, change bool, reason string) {
	m := &r.Row
	i := slices.IndexFunc(res.Sources, func(s SourceCount) bool { return s.Source == m.Source })
	if i < 0 {
		i = len(res.Sources)
		res.Sources = append(res.Sources, SourceCount{Source: m.Source})
	}
	s := &res.Sources[i]
	s.Rows++
	if !change {
		s.Unchanged++
		res.Unchanged++
		return
	}
	s.Changed++
	res.Changed++
	plan := ""
	if r.Forgotten == nil {
		plan = m.Config.Plan.String()
	}
	res.keys = append(res.keys, m.Config.Key())
	res.Touched = append(res.Touched, Touched{m.Source, m.Origin, m.Config.Model.Name, m.Config.Accelerator.Name, plan, reason})
}

// maxTouched bounds the rows of a table.
const maxTouched = 20

// Result is what is printed. With rows, the table has the changed rows, too.
func (res *Changed) Result(rows bool) console.Result {
	counts := [][]string{{"source", "rows", "changed", "unchanged"}}
	for _, s := range res.Sources {
		counts = append(counts, []string{s.Source, strconv.Itoa(s.Rows), strconv.Itoa(s.Changed), strconv.Itoa(s.Unchanged)})
	}
	return console.Result{JSON: res, CSV: counts, Table: func(w io.Writer) error {
		if err := console.WriteTable(w, counts); err != nil {
			return err
		}
		if rows && len(res.Touched) > 0 {
			return res.writeTouched(w)
		}
		return nil
	}}
}

func (res *Changed) writeTouched(w io.Writer) error {
	table := [][]string{{"origin", "model", "accelerator", "plan", "reason"}}
	for _, t := range res.Touched[:min(len(res.Touched), maxTouched)] {
		table = append(table, []string{t.Origin, t.Model, t.Accelerator, t.Plan, t.Reason})
	}
	fmt.Fprintln(w)
	err := console.WriteTable(w, table)
	if n := len(res.Touched) - maxTouched; n > 0 && err == nil {
		_, err = fmt.Fprintf(w, "%d more rows: --output json has all\n", n)
	}
	return err
}

// Refits returns the commands that fit anew what was fitted to rows with the models and accelerators of the change.
func (res *Changed) Refits(d *datadir.Dir) ([]string, error) {
	reg, err := d.Fitted()
	if err != nil {
		return nil, err
	}
	cards, err := reg.List()
	changed := query.CanonicalKeys(res.keys)
	models := map[string][]string{}
	var families []string
	for _, c := range cards {
		if !changed[query.CanonicalKey(c.Key)] {
			continue
		}
		if models[c.Family] == nil {
			families = append(families, c.Family)
		}
		models[c.Family] = append(models[c.Family], fmt.Sprintf("--model %q", c.Model))
	}
	slices.Sort(families)
	var out []string
	for _, f := range families {
		of := slices.Compact(models[f])
		if len(of) > 3 {
			of = nil
		}
		out = append(out, strings.TrimSpace("pacer fit --family "+f+" "+strings.Join(of, " ")))
	}
	return out, err
}
