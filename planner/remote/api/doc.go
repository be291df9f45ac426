// Package api has the operations of pacer serve by names, as docs/reference/api.md describes them, for Go.
//
// Start with client.go. The types of requests and answers are generated from the OpenAPI document; a field that may be
// absent is its zero value, or nil where 0 has a meaning of its own. Package remote has the operations by figures, and the
// transfer of many rows.
package api
