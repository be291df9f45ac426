// Package store keeps measurements on disk, once each, and carries them in and
// out as Parquet and Arrow files.
//
//	db, err := store.Open(dir, store.Options{})
//	counts, err := db.PutAll(ctx, ms...)       // on disk when it returns
//	for m, err := range db.Query(ctx, store.Filter{Models: []string{"gpt2-xl"}}) { ... }
//	n, err := store.ExportFile("rows.parquet", store.Parquet, db.Query(ctx, store.Filter{}))
//
// One process writes, or several read. Rows that PutAll returned for survive
// the process being killed and the machine losing power. A row is known by what
// was run and what was seen, so importing a file again adds nothing, and
// importing it with a corrected catalog updates the rows in place.
//
// Reading guide: key.go says what makes two rows the same and where a row is
// kept, record.go how; put.go and query.go are most of the interface; columns.go
// lists the columns of exported files. inspect.go and seal.go check the files
// before the engine, badger, opens them; migrate.go brings older stores up to
// date. FORMAT.md draws the bytes.
package store
