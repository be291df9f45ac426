package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/pacer-ml/pacer/cmd/server/pacerpb"
	"github.com/pacer-ml/pacer/cmd/server/problem"
)

// pacerService implements the service of pacer.proto. Its messages are the JSON of HTTP, so it asks the handlers of
// HTTP: the same checks, fair queues, cached answers and errors.
type pacerService struct {
	pacerpb.UnimplementedPacerServer
	s *Server
}

// Version implements pacerpb.PacerServer.
func (p *pacerService) Version(context.Context, *pacerpb.VersionRequest) (*pacerpb.VersionResponse, error) {
	return &pacerpb.VersionResponse{Version: p.s.o.Version}, nil
}

// Plan implements pacerpb.PacerServer.
func (p *pacerService) Plan(ctx context.Context, in *pacerpb.PlanRequest) (*pacerpb.Plans, error) {
	out := new(pacerpb.Plans)
	return out, p.s.ask(ctx, "/v1/plan", in, out)
}

// Predict implements pacerpb.PacerServer.
func (p *pacerService) Predict(stream grpc.BidiStreamingServer[pacerpb.PredictRequest, pacerpb.PredictResponse]) error {
	for {
		in, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		out, err := p.predict(stream.Context(), in)
		if err != nil {
			return err
		}
		if err := stream.Send(out); err != nil {
			return err
		}
	}
}

// predict answers one question. A problem with the question is an answer; one of the server ends the stream.
func (p *pacerService) predict(ctx context.Context, in *pacerpb.PredictRequest) (*pacerpb.PredictResponse, error) {
	plans := new(pacerpb.Plans)
	err := p.s.ask(ctx, "/v1/predict", in, plans)
	var bad *problem.Problem
	switch {
	case err == nil:
		return &pacerpb.PredictResponse{Answer: &pacerpb.PredictResponse_Plans{Plans: plans}}, nil
	case errors.As(err, &bad) && bad.Status < http.StatusInternalServerError && bad.Status != http.StatusTooManyRequests:
		return &pacerpb.PredictResponse{Answer: &pacerpb.PredictResponse_Problem{Problem: &pacerpb.Problem{Status: int32(bad.Status), Type: bad.Type, Detail: bad.Detail}}}, nil
	}
	return nil, err
}

// ask answers in as POST of path does. Problems are *problem.Problem.
func (s *Server) ask(ctx context.Context, path string, in, out proto.Message) error {
	body, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(in)
	if err != nil {
		return badFlight("the message is no JSON: " + err.Error())
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer := &innerAnswer{header: http.Header{}, status: http.StatusOK}
	w := &responseWriter{ResponseWriter: answer, request: ctx, most: s.o.MaxAnswer, memory: lease{budget: s.memory}}
	defer w.memory.end()
	s.router.ServeHTTP(w, r)
	w.send()
	if answer.status == http.StatusOK {
		return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(answer.body.Bytes(), out)
	}
	bad := &problem.Problem{RetryAfter: answer.header.Get("Retry-After")}
	if err := json.Unmarshal(answer.body.Bytes(), bad); err != nil {
		return fmt.Errorf("status %d of %s: %w", answer.status, path, err)
	}
	return bad
}

// innerAnswer keeps an answer.
type innerAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (k *innerAnswer) Header() http.Header { return k.header }

// WriteHeader implements http.ResponseWriter.
func (k *innerAnswer) WriteHeader(status int) { k.status = status }

// Write implements http.ResponseWriter.
func (k *innerAnswer) Write(b []byte) (int, error) { return k.body.Write(b) }
