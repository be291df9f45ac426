package server

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

// rpcType begins the content types of gRPC.
const rpcType = "application/grpc"

// rpcCodes are the codes of gRPC for statuses of HTTP.
var rpcCodes = map[int]codes.Code{
	http.StatusOK:                    codes.OK,
	http.StatusBadRequest:            codes.InvalidArgument,
	http.StatusUnprocessableEntity:   codes.InvalidArgument,
	http.StatusUnauthorized:          codes.Unauthenticated,
	http.StatusForbidden:             codes.PermissionDenied,
	http.StatusNotFound:              codes.NotFound,
	http.StatusConflict:              codes.Aborted,
	http.StatusMisdirectedRequest:    codes.FailedPrecondition, // of a replica
	http.StatusRequestTimeout:        codes.DeadlineExceeded,
	http.StatusRequestEntityTooLarge: codes.ResourceExhausted,
	http.StatusTooManyRequests:       codes.ResourceExhausted,
	http.StatusInsufficientStorage:   codes.ResourceExhausted,
	http.StatusServiceUnavailable:    codes.Unavailable,
	statusClientClosed:               codes.Canceled,
}

// codeOf returns the code of a problem.
func codeOf(p *Problem) codes.Code {
	if p.Type == typeTimeout {
		return codes.DeadlineExceeded
	}
	if c, ok := rpcCodes[p.Status]; ok {
		return c
	}
	return codes.Internal
}

// statusOf returns the status of HTTP with which an answer of a code, in decimal digits, counts.
func statusOf(code string) int {
	n, err := strconv.Atoi(code)
	if err != nil {
		return http.StatusInternalServerError
	}
	switch codes.Code(n) {
	case codes.InvalidArgument, codes.OutOfRange:
		return http.StatusUnprocessableEntity
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.DeadlineExceeded:
		return http.StatusServiceUnavailable
	case codes.Unimplemented:
		return http.StatusNotFound
	}
	for s, c := range rpcCodes {
		if c == codes.Code(n) {
			return s
		}
	}
	return http.StatusInternalServerError
}

// rpcStatus returns p as a status of gRPC, with the same text. Its details have the type, the fields and the wait.
func rpcStatus(p *Problem) *status.Status {
	shorten(&p.ErrorModel)
	st := status.New(codeOf(p), p.Detail)
	var details []protoadapt.MessageV1
	if p.Type != "" {
		details = append(details, &errdetails.ErrorInfo{Reason: p.Type, Domain: "pacer"})
	}
	if len(p.Errors) > 0 {
		bad := &errdetails.BadRequest{}
		for _, e := range p.Errors {
			bad.FieldViolations = append(bad.FieldViolations, &errdetails.BadRequest_FieldViolation{Field: e.Location, Description: e.Message})
		}
		details = append(details, bad)
	}
	if sec, err := strconv.Atoi(p.retryAfter); err == nil {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Duration(sec) * time.Second)})
	}
	if with, err := st.WithDetails(details...); err == nil && len(details) > 0 {
		return with
	}
	return st
}

// writeRPCProblem writes p as the answer to a request of gRPC: a response without a body ("Trailers-Only").
func writeRPCProblem(w http.ResponseWriter, p *Problem) {
	st := rpcStatus(p)
	h := w.Header()
	h.Set("Content-Type", rpcType)
	h.Set("Grpc-Status", strconv.Itoa(int(st.Code())))
	h.Set("Grpc-Message", percentEncoded(st.Message()))
	if b, err := proto.Marshal(st.Proto()); err == nil {
		h.Set("Grpc-Status-Details-Bin", base64.RawStdEncoding.EncodeToString(b))
	}
	w.WriteHeader(http.StatusOK)
}

// percentEncoded is the form of a message in a header, see "gRPC over HTTP2".
func percentEncoded(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c >= ' ' && c <= '~' && c != '%' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// rpcError returns err as an error of gRPC, and keeps it for the log where it is one of the server.
func rpcError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var ready *Problem
	if st, ok := status.FromError(err); ok && !errors.As(err, &ready) {
		return st.Err()
	}
	p := problem(err)
	if p.Status >= 500 {
		requestOf(ctx).err = err
	}
	return rpcStatus(p).Err()
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
