// Package answercache spares answers that are already there: Cache has those of whole requests, and WithETag sends none
// that the client has.
package answercache
