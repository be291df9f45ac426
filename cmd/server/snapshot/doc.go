// Package snapshot copies the store and the fitted models of one pacer serve, the writer, through an object store or a
// shared directory to others, its replicas, which answer the same questions.
//
// The writer puts numbered, immutable objects; what it acknowledges is in one of them. A lease lets only one process
// write. A replica polls the names of the objects and applies the new ones to its own store.
//
//	lease/000000000007                            which process may write; see Lease
//	snapshots/000000000005-000000000000.full      store and models at the start of term 5
//	snapshots/000000000005-000000000001.changes   what has changed since the object before
//	snapshots/000000000005-000000000064.full      store and models after changes 64
//
// A term is the number of the lease object that began it. Objects of an older term than the newest with a full snapshot
// do not count, so nothing that a former writer still puts reaches a replica.
//
// Start with lease.go (which process may write, and why two never do), then object.go (what an object has), writer.go and
// replica.go. bucket.go opens object stores, and state.go is what a data directory knows of them.
package snapshot
