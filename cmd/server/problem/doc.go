// Package problem is the error responses of the server (RFC 9457), over HTTP and gRPC alike.
//
// Start with Problem and Of, which finds the response of an error; grpc.go has the codes and statuses of gRPC.
package problem
