package store

import (
	"context"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Origins finds rows that are stored under another path of their file. An origin is part of a row's
// identity, so a data set that is imported from another folder, or that an earlier release imported,
// would otherwise be stored twice.
//
// Two rows are the same if they differ in their origins only and one origin is the end of the other,
// after a slash: traces/bert/rows.csv:3 and bert/rows.csv:3. Rows stored since the first call for their source
// are not considered, so rows of one import are never taken for each other.
type Origins struct {
	db      *DB
	sources map[string]map[[identityLen]byte][]string // stored origins, by source and by identity without folders
}

// NewOrigins returns the origins of the rows that db holds.
func NewOrigins(db *DB) *Origins {
	return &Origins{db: db, sources: map[string]map[[identityLen]byte][]string{}}
}

// Stored returns the origin under which m is stored, m.Origin if it is not. Each stored row is
// returned for one m only.
func (o *Origins) Stored(ctx context.Context, m spec.Measurement) (string, error) {
	rows, ok := o.sources[m.Source]
	if !ok {
		rows = map[[identityLen]byte][]string{}
		for stored, err := range o.db.Query(ctx, Filter{Sources: []string{m.Source}}) {
			if err != nil {
				return "", err
			}
			id := identityInFile(stored)
			rows[id] = append(rows[id], stored.Origin)
		}
		o.sources[m.Source] = rows
	}
	id := identityInFile(m)
	i := closest(m.Origin, rows[id])
	if i < 0 {
		return m.Origin, nil
	}
	origin := rows[id][i]
	rows[id] = slices.Delete(rows[id], i, i+1)
	return origin, nil
}

// identityInFile is identity without the folders of the origin.
func identityInFile(m spec.Measurement) [identityLen]byte {
	m.Origin = m.Origin[strings.LastIndex(m.Origin, "/")+1:]
	return identity(m)
}

// closest returns the position of origin in stored, else of the longest that is the end of origin
// or that ends in it; -1 without one.
func closest(origin string, stored []string) int {
	best := -1
	for i, s := range stored {
		switch {
		case s == origin:
			return i
		case (strings.HasSuffix(s, "/"+origin) || strings.HasSuffix(origin, "/"+s)) && (best < 0 || len(s) > len(stored[best])):
			best = i
		}
	}
	return best
}
