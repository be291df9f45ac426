package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/flight"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/pacer-ml/pacer/cmd/server/batches"
	"github.com/pacer-ml/pacer/cmd/server/bodycheck"
	"github.com/pacer-ml/pacer/cmd/server/problem"
	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Paths of flights.
const (
	flightMeasurements = "measurements" // rows out and in
	flightPredict      = "predict"      // questions in, predictions out
)

// flightRows is the number of rows of a record batch of an export, about 1.5 MB: clients of gRPC take 4 MB by default.
const flightRows = 2048

// flightService implements Arrow Flight.
type flightService struct {
	flight.BaseFlightServer
	s *Server
}

// Selection selects stored measurements. It is the ticket and the command of the flight "measurements", as JSON; an
// empty one selects all. The fields are the parameters of GET /v1/measurements/rows.
type Selection struct {
	Models       []string `json:"model,omitempty"`
	Accelerators []string `json:"accelerator,omitempty"`
	Sources      []string `json:"source,omitempty"`
	Outcomes     []string `json:"outcome,omitempty"`
}

// maxSelection bounds the names of each list of a Selection.
const maxSelection = 1000

// selection reads a Selection.
func selection(b []byte) (out Selection, err error) {
	if len(bytes.TrimSpace(b)) == 0 {
		return out, nil
	}
	if p := bodycheck.Malformed(b); p != nil {
		return out, p
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		return out, badFlight(fmt.Sprintf("the selection is not an object with lists model, accelerator, source, outcome: %v", err))
	}
	for name, list := range map[string][]string{"model": out.Models, "accelerator": out.Accelerators, "source": out.Sources, "outcome": out.Outcomes} {
		if len(list) > maxSelection {
			return out, badFlight(fmt.Sprintf("%s has %d names, want at most %d", name, len(list), maxSelection))
		}
	}
	for _, o := range out.Outcomes {
		if !slices.Contains([]spec.Outcome{spec.OK, spec.OOM, spec.Timeout, spec.Failed}, spec.Outcome(o)) {
			return out, badFlight(fmt.Sprintf("outcome %q: want ok, oom, timeout or failed", problem.Echo(o)))
		}
	}
	return out, nil
}

func badFlight(why string) *problem.Problem {
	return problem.New(http.StatusUnprocessableEntity, "", why)
}

// filter returns the filter of a Selection.
func (s *Server) filter(ctx context.Context, in Selection) (store.Filter, error) {
	f, err := s.resolver.StoredFilter(ctx, store.Filter{Models: in.Models, Accelerators: in.Accelerators, Sources: in.Sources})
	for _, o := range in.Outcomes {
		f.Outcomes = append(f.Outcomes, spec.Outcome(o))
	}
	return f, err
}

// selected reads the selection of a descriptor, which is that of the measurements.
func selected(d *flight.FlightDescriptor) (Selection, error) {
	switch {
	case d.GetType() == flight.DescriptorCMD:
		return selection(d.Cmd)
	case len(d.GetPath()) == 1 && d.Path[0] == flightMeasurements:
		return Selection{}, nil
	}
	return Selection{}, noFlight(d)
}

func noFlight(d *flight.FlightDescriptor) *problem.Problem {
	return problem.New(http.StatusNotFound, "", fmt.Sprintf("there is no flight %q: want the path %q or %q", problem.Echo(strings.Join(d.GetPath(), "/")), flightMeasurements, flightPredict))
}

// GetSchema implements flight.FlightServer.
func (f *flightService) GetSchema(_ context.Context, d *flight.FlightDescriptor) (*flight.SchemaResult, error) {
	if _, err := selected(d); err != nil {
		return nil, err
	}
	return &flight.SchemaResult{Schema: flight.SerializeSchema(rowfile.Schema(), memory.DefaultAllocator)}, nil
}

// GetFlightInfo implements flight.FlightServer.
func (f *flightService) GetFlightInfo(ctx context.Context, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	in, err := selected(d)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, f.s.o.Timeout)
	defer cancel()
	return admitted(ctx, f.s, light, 0, func() (*flight.FlightInfo, error) { return f.info(ctx, d, in) })
}

// info describes the measurements that in selects.
func (f *flightService) info(ctx context.Context, d *flight.FlightDescriptor, in Selection) (*flight.FlightInfo, error) {
	filter, err := f.s.filter(ctx, in)
	if err != nil {
		return nil, err
	}
	n, err := f.s.db.Len(ctx, filter)
	if err != nil {
		return nil, err
	}
	ticket, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	return &flight.FlightInfo{Schema: flight.SerializeSchema(rowfile.Schema(), memory.DefaultAllocator), FlightDescriptor: d,
		Endpoint: []*flight.FlightEndpoint{{Ticket: &flight.Ticket{Ticket: ticket}}}, TotalRecords: int64(n), TotalBytes: -1}, nil
}

// ListFlights implements flight.FlightServer.
func (f *flightService) ListFlights(c *flight.Criteria, stream flight.FlightService_ListFlightsServer) error {
	if len(c.GetExpression()) > 0 {
		return badFlight("flights are not selected by criteria")
	}
	info, err := f.GetFlightInfo(stream.Context(), &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{flightMeasurements}})
	if err != nil {
		return err
	}
	return stream.Send(info)
}

// DoGet implements flight.FlightServer: it sends the measurements that the ticket selects, as of its start.
func (f *flightService) DoGet(t *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	in, err := selection(t.GetTicket())
	if err != nil {
		return err
	}
	s, ctx := f.s, stream.Context()
	select {
	case s.router.streams <- struct{}{}:
		defer func() { <-s.router.streams }()
	default:
		return s.busy("streams", 10*time.Second, fmt.Sprintf("%d backups and exports are running", maxStreams))
	}
	filter, err := s.filter(ctx, in)
	if err != nil {
		return err
	}
	w := batches.NewWriter(stream, rowfile.Schema())
	defer w.Close()
	_, err = s.db.Batches(ctx, func(rec arrow.Record) error { return w.Write(rec) }, flightRows, filter)
	return err
}
