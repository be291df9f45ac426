// Package simqueue runs the simulations that clients of a server request, one at a time, and keeps the last ones with their
// figures and reports.
//
// Start with Queue. request.go checks requests: they are bounded, and name no file of the server.
package simqueue
