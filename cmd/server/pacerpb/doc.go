// Package pacerpb is the gRPC API of pacer serve, generated from pacer.proto by make proto.
//
// Start with pacer.proto; the Go files beside it are generated.
package pacerpb
