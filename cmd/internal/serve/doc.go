// Package serve is the commands pacer serve and pacer token: the query API of cmd/server with
// its data directory, address, tokens and limits.
//
// Start with command.go, then security.go (tokens, TLS, listeners), token.go and telemetry.go (traces and
// metrics for OpenTelemetry).
package serve
