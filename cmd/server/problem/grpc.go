package problem

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

// StatusClientClosed (499) counts requests with a client that disconnected before
// the response.
const StatusClientClosed = 499

// GRPCType begins the content types of gRPC.
const GRPCType = "application/grpc"

// grpcCodes are the codes of gRPC for statuses of HTTP.
var grpcCodes = map[int]codes.Code{
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
	StatusClientClosed:               codes.Canceled,
}

// codeOf returns the code of a problem.
func codeOf(p *Problem) codes.Code {
	if p.Type == TypeTimeout {
		return codes.DeadlineExceeded
	}
	if c, ok := grpcCodes[p.Status]; ok {
		return c
	}
	return codes.Internal
}

// StatusOf returns the status of HTTP with which an answer of a code, in decimal digits, counts.
func StatusOf(code string) int {
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
	for s, c := range grpcCodes {
		if c == codes.Code(n) {
			return s
		}
	}
	return http.StatusInternalServerError
}

// GRPCStatus returns p as a status of gRPC, with the same text. Its details have the type, the fields and the wait.
func GRPCStatus(p *Problem) *status.Status {
	Shorten(&p.ErrorModel)
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
	if sec, err := strconv.Atoi(p.RetryAfter); err == nil {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Duration(sec) * time.Second)})
	}
	if with, err := st.WithDetails(details...); err == nil && len(details) > 0 {
		return with
	}
	return st
}

// writeGRPC writes p as the answer to a request of gRPC: a response without a body ("Trailers-Only").
func writeGRPC(w http.ResponseWriter, p *Problem) {
	st := GRPCStatus(p)
	h := w.Header()
	h.Set("Content-Type", GRPCType)
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
