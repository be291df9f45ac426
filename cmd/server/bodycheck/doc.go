// Package bodycheck reads bodies of requests that may be hostile. A body is decompressed within a bound of memory, and
// its syntax and schema are checked before anything is built of it, so that a wrong body costs little.
//
// Start with syntax.go (Malformed: syntax, depth and numbers). schema.go has Invalid, decompress.go the bound of memory.
package bodycheck
