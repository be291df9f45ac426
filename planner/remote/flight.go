package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/flight"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/pacer-ml/pacer/perfmodel/columnar"
)

// Flights of the server.
const (
	flightMeasurements = "measurements"
	flightPredict      = "predict"
)

// maxMessage bounds a message of the server.
const maxMessage = 64 << 20

// dialFlight returns a connection to the address of gRPC. secure asks for TLS, with the configuration of transport.
func dialFlight(address string, secure bool, transport http.RoundTripper) (*grpc.ClientConn, error) {
	with := insecure.NewCredentials()
	if secure {
		config := &tls.Config{MinVersion: tls.VersionTLS12}
		if t, ok := transport.(*http.Transport); ok && t.TLSClientConfig != nil {
			config = t.TLSClientConfig.Clone()
			config.NextProtos = nil
		}
		with = credentials.NewTLS(config)
	}
	return grpc.NewClient(address, grpc.WithTransportCredentials(with), grpc.WithDisableRetry(), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
}

// fly calls once with a client of Arrow Flight until it has no error, as send does. The context of a try has the token,
// and the idempotency key unless that is "".
func (c *Client) fly(ctx context.Context, key string, once func(context.Context, flight.Client) error) error {
	var pairs []string
	if c.o.Token != "" {
		pairs = append(pairs, "authorization", "Bearer "+c.o.Token)
	}
	if key != "" {
		pairs = append(pairs, "idempotency-key", key)
	}
	client := flight.NewClientFromConn(c.flights, nil)
	return c.retry(ctx, true, func() (failure, error) {
		trying, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, pairs...))
		defer cancel()
		err := once(trying, client)
		switch {
		case err == nil:
			return failure{}, nil
		case ctx.Err() != nil:
			return failure{}, fmt.Errorf("remote: %w", ctx.Err())
		}
		return flightFailure(err, c.o.MaxWait)
	})
}

// timed is ctx with the timeout of one try.
func (c *Client) timed(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.o.Timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.o.Timeout)
}

// httpStatus are the statuses of HTTP for codes of gRPC.
var httpStatus = map[codes.Code]int{
	codes.InvalidArgument:    http.StatusUnprocessableEntity,
	codes.Unauthenticated:    http.StatusUnauthorized,
	codes.PermissionDenied:   http.StatusForbidden,
	codes.NotFound:           http.StatusNotFound,
	codes.Unimplemented:      http.StatusNotFound,
	codes.Aborted:            http.StatusConflict,
	codes.FailedPrecondition: http.StatusMisdirectedRequest,
	codes.ResourceExhausted:  http.StatusTooManyRequests,
	codes.Unavailable:        http.StatusServiceUnavailable,
	codes.DeadlineExceeded:   http.StatusServiceUnavailable,
}

// flightFailure reads an error of gRPC; the wait that the server asks for is at most most.
func flightFailure(err error, most time.Duration) (f failure, problem error) {
	var answered interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &answered) { // an error of this program
		return failure{}, fmt.Errorf("remote: %w", err)
	}
	st := answered.GRPCStatus()
	e := &Error{Problem{Status: httpStatus[st.Code()], Detail: st.Message()}}
	if e.Status == 0 {
		e.Status = http.StatusInternalServerError
	}
	e.Title = http.StatusText(e.Status)
	switch st.Code() {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Aborted:
		f.lost = true
	}
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			e.Type = d.Reason
		case *errdetails.BadRequest:
			for _, v := range d.FieldViolations {
				e.Errors = append(e.Errors, Detail{Message: v.Description, Location: v.Field})
			}
		case *errdetails.RetryInfo:
			f = failure{asked: true, after: min(d.RetryDelay.AsDuration(), most)}
		}
	}
	return f, e
}

// sendBatch writes a record batch as the only one of a flight, and ends the stream.
func sendBatch(stream interface {
	flight.DataStreamWriter
	CloseSend() error
}, path string, rec arrow.Record) error {
	w := flight.NewRecordWriter(stream, ipc.WithSchema(rec.Schema()))
	w.SetFlightDescriptor(&flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{path}})
	err := errors.Join(w.Write(rec), w.Close(), stream.CloseSend())
	if errors.Is(err, io.EOF) {
		return nil // the server has answered
	}
	return err
}

// readBatches calls each with the record batches of a stream, which are valid until it returns.
func readBatches(stream flight.DataStreamReader, each func(arrow.Record) error) error {
	var r *flight.Reader
	err := columnar.Guard(func() (err error) {
		r, err = flight.NewRecordReader(stream, ipc.WithAllocator(columnar.Memory()))
		return err
	})
	if err != nil {
		return err
	}
	defer r.Release()
	for {
		var rec arrow.Record
		err := columnar.Guard(func() (err error) {
			rec, err = r.Read()
			return err
		})
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = each(rec)
		}
		if err != nil {
			return err
		}
	}
}
