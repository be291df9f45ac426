package trust

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/profiler/store"
)

// RunNotes returns what a run of a campaign does about its quarantined and forgotten points. Their origins begin with
// prefix.
func RunNotes(ctx context.Context, db *store.DB, source, prefix string) (notes []string, err error) {
	rs, err := db.Records(ctx, store.Filter{Sources: []string{source}})
	rs = slices.DeleteFunc(rs, func(r store.Record) bool { return !strings.HasPrefix(r.Row.Origin, prefix) })
	for _, g := range Groups(rs) {
		does := ""
		switch g.State {
		case quarantined:
			does = "quarantined: not used, and not measured again unless pacer store forget deletes them"
		case forgotten:
			does = "forgotten: measured again"
		default:
			continue
		}
		notes = append(notes, fmt.Sprintf("%d points of this run are %s (%s, by %s)", g.Rows, does, cmp.Or(g.Reason, "no reason given"), g.By))
	}
	return notes, err
}
