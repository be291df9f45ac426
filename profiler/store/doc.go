// Package store keeps measurements on disk without duplicates.
//
//	db, err := store.Open(dir, store.Options{})
//	counts, err := db.PutAll(ctx, ms...)       // on disk when it returns
//	for m, err := range db.Query(ctx, store.Filter{Models: []string{"gpt2-xl"}}) { ... }
//	n, err := rowfile.ExportFile("rows.parquet", rowfile.Parquet, db.Query(ctx, store.Filter{}))
//
// One process can write, or several can read. Rows that PutAll acknowledged survive kill -9 and power failures.
// The identity of a row is a hash of its configuration and result: importing a file again adds nothing, and
// importing it with a corrected catalog updates the rows in place. Quarantine keeps rows but doubts them, Forget deletes
// them and refuses them from then on, Release ends both.
//
// Start with key.go (identity and keys), record.go (values) and put.go; then query.go and mark.go (quarantine, forget).
// changes.go and backup.go copy a store. inspect.go and seal.go check the files before
// badger, the storage engine, opens them, and verify.go those of an open store; migrate.go converts older stores.
// FORMAT.md describes the bytes on disk.
package store
