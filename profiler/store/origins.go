package store

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/dgraph-io/badger/v4"

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
	read    func(ctx context.Context, source string) (map[[identityLen]byte][]knownOrigin, error)
	sources map[string]map[[identityLen]byte][]knownOrigin // by source and by identity without folders
}

// knownOrigin is the origin of a stored or forgotten row.
type knownOrigin struct {
	origin    string
	forgotten *Mark // nil = the row is stored
}

// NewOrigins returns the origins of the rows that db holds or has forgotten.
func NewOrigins(db *DB) *Origins {
	return originsOf(func(ctx context.Context, source string) (map[[identityLen]byte][]knownOrigin, error) {
		f := Filter{Sources: []string{source}}
		rows, err := originsIn(db.Query(ctx, f))
		if err != nil {
			return nil, err
		}
		return rows, db.view(func(txn *badger.Txn) error {
			return scanForgotten(ctx, txn, f, func(r Record, t tombstone) {
				var id [identityLen]byte
				copy(id[:], t.InFile)
				rows[id] = append(rows[id], knownOrigin{t.Origin, r.Forgotten})
			})
		})
	})
}

// OriginsOf returns the origins of rows that another process holds; rows returns those of a source.
func OriginsOf(rows func(ctx context.Context, source string) iter.Seq2[spec.Measurement, error]) *Origins {
	return originsOf(func(ctx context.Context, source string) (map[[identityLen]byte][]knownOrigin, error) {
		return originsIn(rows(ctx, source))
	})
}

func originsOf(read func(context.Context, string) (map[[identityLen]byte][]knownOrigin, error)) *Origins {
	return &Origins{read, map[string]map[[identityLen]byte][]knownOrigin{}}
}

// Stored returns the origin under which m is stored or forgotten, m.Origin if it is neither, and the mark of a forgotten
// row. Each such row is returned for one m only.
func (o *Origins) Stored(ctx context.Context, m spec.Measurement) (origin string, forgotten *Mark, err error) {
	rows, ok := o.sources[m.Source]
	if !ok {
		if rows, err = o.read(ctx, m.Source); err != nil {
			return "", nil, err
		}
		o.sources[m.Source] = rows
	}
	id := identityInFile(m)
	i := closest(m.Origin, rows[id])
	if i < 0 {
		return m.Origin, nil, nil
	}
	k := rows[id][i]
	rows[id] = slices.Delete(rows[id], i, i+1)
	return k.origin, k.forgotten, nil
}

// originsIn returns the origins of rows.
func originsIn(rows iter.Seq2[spec.Measurement, error]) (map[[identityLen]byte][]knownOrigin, error) {
	out := map[[identityLen]byte][]knownOrigin{}
	for m, err := range rows {
		if err != nil {
			return nil, err
		}
		id := identityInFile(m)
		out[id] = append(out[id], knownOrigin{origin: m.Origin})
	}
	return out, nil
}

// identityInFile is identity without the folders of the origin.
func identityInFile(m spec.Measurement) [identityLen]byte {
	m.Origin = m.Origin[strings.LastIndex(m.Origin, "/")+1:]
	return identity(m)
}

// closest returns the position of origin in stored, else of the longest that is the end of origin
// or that ends in it; -1 without one.
func closest(origin string, stored []knownOrigin) int {
	best := -1
	for i, known := range stored {
		s := known.origin
		switch {
		case s == origin:
			return i
		case (strings.HasSuffix(s, "/"+origin) || strings.HasSuffix(origin, "/"+s)) && (best < 0 || len(s) > len(stored[best].origin)):
			best = i
		}
	}
	return best
}
