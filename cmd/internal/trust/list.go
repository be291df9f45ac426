package trust

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/profiler/store"
)

// States of rows.
const (
	used        = "used"
	inDoubt     = "in doubt"
	quarantined = "quarantined"
	forgotten   = "forgotten"
)

// Group counts the rows of a source with one state, and one reason and origin of that state.
type Group struct {
	Source string `json:"source"`
	State  string `json:"state"` // used, in doubt, quarantined or forgotten
	Rows   int    `json:"rows"`
	Reason string `json:"reason,omitempty"` // of the doubt, quarantine or forgetting
	// By is the user that quarantined or forgot the rows, and At the last time; of others, the user that stored them, and
	// From the file or command. They are absent for rows stored by a release that did not record it.
	By   string     `json:"by,omitempty"`
	From string     `json:"from,omitempty"`
	At   *time.Time `json:"at,omitempty"`
}

// List counts the rows that s chooses.
func List(ctx context.Context, d *datadir.Dir, s Selection) (out []Group, err error) {
	read := false
	err = d.Read(func(db *store.DB) error {
		read = true
		rs, err := s.of(ctx, d, db)
		out = Groups(rs)
		return err
	})
	if err == nil && !read {
		err = d.NoneOf(store.Filter{}, nil)
	}
	return out, err
}

// Groups counts rs by source, state, reason, by and from.
func Groups(rs []store.Record) []Group {
	out := []Group{}
	found := map[Group]int{}
	for i := range rs {
		g, at := groupOf(&rs[i])
		n, ok := found[g]
		if !ok {
			n = len(out)
			found[g] = n
			out = append(out, g)
		}
		out[n].Rows++
		if !at.IsZero() && (out[n].At == nil || at.After(*out[n].At)) {
			out[n].At = &at
		}
	}
	states := []string{used, inDoubt, quarantined, forgotten}
	slices.SortStableFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), slices.Index(states, a.State)-slices.Index(states, b.State),
			cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.By, b.By), cmp.Compare(a.From, b.From))
	})
	return out
}

// groupOf returns the group of a row without its count and time, and the time of the row.
func groupOf(r *store.Record) (g Group, at time.Time) {
	g = Group{Source: r.Row.Source, State: used}
	mark := r.Quarantined
	switch {
	case mark != nil:
		g.State = quarantined
	case r.Forgotten != nil:
		mark, g.State = r.Forgotten, forgotten
	case r.Row.DoubtReason() != "":
		g.State, g.Reason = inDoubt, r.Row.DoubtReason()
	}
	switch {
	case mark != nil:
		g.Reason, g.By, at = mark.Reason, mark.By, mark.At
	case r.Provenance != nil:
		g.By, g.From, at = r.Provenance.By, r.Provenance.From, r.Provenance.At
	}
	return g, at
}

// ListResult is what is printed for groups.
func ListResult(gs []Group) console.Result {
	table := [][]string{{"source", "state", "rows", "reason", "by", "from", "at"}}
	for _, g := range gs {
		at := ""
		if g.At != nil {
			at = g.At.Format(time.RFC3339)
		}
		table = append(table, []string{g.Source, g.State, strconv.Itoa(g.Rows), g.Reason, g.By, g.From, at})
	}
	return console.Result{JSON: map[string]any{"groups": gs}, CSV: table}
}
