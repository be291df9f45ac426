package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pacer-ml/pacer/cmd/server/problem"
)

// rpcError returns err as an error of gRPC, and keeps it for the log where it is one of the server.
func rpcError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var ready *problem.Problem
	if st, ok := status.FromError(err); ok && !errors.As(err, &ready) {
		return st.Err()
	}
	p := problem.Of(err)
	if p.Status >= 500 {
		requestOf(ctx).err = err
	}
	return problem.GRPCStatus(p).Err()
}

// errEnded is the error of a handler that would begin after its client has disconnected.
var errEnded = status.Error(codes.Canceled, "the client has disconnected")

// unary is a grpc.UnaryServerInterceptor.
func (s *Server) unary(ctx context.Context, in any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (out any, err error) {
	f := inflowOf(ctx)
	if !f.begin() {
		return nil, errEnded
	}
	defer f.done()
	defer s.rpcRecovered(ctx, info.FullMethod, &err)
	out, err = handle(ctx, in)
	return out, rpcError(ctx, err)
}

// streaming is a grpc.StreamServerInterceptor.
func (s *Server) streaming(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
	ctx := stream.Context()
	f := inflowOf(ctx)
	if !f.begin() {
		return errEnded
	}
	defer f.done()
	defer s.rpcRecovered(ctx, info.FullMethod, &err)
	defer context.AfterFunc(s.draining, f.drain)()
	if strings.HasPrefix(info.FullMethod, healthService) { // it ends only with its context
		watch, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.draining, cancel)()
		ctx = watch
	}
	return rpcError(ctx, handle(srv, &rpcStream{stream, ctx, f}))
}

// rpcRecovered, deferred, answers a panic with an error.
func (s *Server) rpcRecovered(ctx context.Context, method string, err *error) {
	v := recover()
	if v == nil {
		return
	}
	s.metrics.panics.Inc()
	s.o.Log.Error("panic", "id", requestOf(ctx).id, "path", method, "value", fmt.Sprint(v), "stack", string(debug.Stack()))
	*err = status.Error(codes.Internal, "an internal error, which was logged")
}
