// Package s3test runs a real S3 server for tests: versitygw, which make engines builds.
//
// Start with server.go.
package s3test
