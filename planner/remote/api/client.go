package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pacer-ml/pacer/planner/remote"
)

// Client has a method for each operation. It is safe for concurrent use. Errors of the server are *remote.Error.
type Client struct{ remote *remote.Client }

// New returns a client that sends its requests as c does.
func New(c *remote.Client) Client { return Client{c} }

// get returns the answer of a GET.
func get[O any](ctx context.Context, c Client, path string) (out O, err error) {
	return change[O](ctx, c, http.MethodGet, path, nil)
}

// ask returns the answer to a POST that changes nothing.
func ask[O any](ctx context.Context, c Client, path string, in any) (out O, err error) {
	err = c.remote.Ask(ctx, path, in, &out)
	return out, err
}

// change returns the answer to a request that the server may have carried out although there is an error.
func change[O any](ctx context.Context, c Client, method, path string, in any) (out O, err error) {
	err = c.remote.Do(ctx, method, path, in, &out)
	return out, err
}

// text returns an answer that is not JSON.
func (c Client) text(ctx context.Context, path string) ([]byte, error) {
	var out bytes.Buffer
	err := c.remote.Copy(ctx, &out, path)
	return out.Bytes(), err
}

// Predict returns step time and memory of a plan.
func (c Client) Predict(ctx context.Context, in PredictRequest) (Plans, error) {
	return ask[Plans](ctx, c, "/v1/predict", in)
}

// PredictBatch returns step time and memory of up to 10000 plans; remote.Client.PredictAll of any number.
func (c Client) PredictBatch(ctx context.Context, in BatchRequest) (Batch, error) {
	return ask[Batch](ctx, c, "/v1/predict/batch", in)
}

// Plan returns the best plans on given devices.
func (c Client) Plan(ctx context.Context, in PlanRequest) (Plans, error) {
	return ask[Plans](ctx, c, "/v1/plan", in)
}

// Curve returns the best throughput on every number of devices.
func (c Client) Curve(ctx context.Context, in CurveRequest) (Curve, error) {
	return ask[Curve](ctx, c, "/v1/curve", in)
}

// Recommend returns how many devices to train on, and their type, with time and cost.
func (c Client) Recommend(ctx context.Context, in RecommendRequest) (Recommendation, error) {
	return ask[Recommendation](ctx, c, "/v1/recommend", in)
}

// FitCheck returns whether a plan fits, its headroom, and changes that make it fit.
func (c Client) FitCheck(ctx context.Context, in FitCheckRequest) (FitCheck, error) {
	return ask[FitCheck](ctx, c, "/v1/fit-check", in)
}

// Check reads a launch file: whether it fits, its speed, and what would be better.
func (c Client) Check(ctx context.Context, in CheckRequest) (Check, error) {
	return ask[Check](ctx, c, "/v1/check", in)
}

// Nearest returns the stored measurements nearest to a plan.
func (c Client) Nearest(ctx context.Context, in NearestRequest) (Nearest, error) {
	return ask[Nearest](ctx, c, "/v1/nearest", in)
}

// CalibrateNext returns which plans to measure next, in order, and why.
func (c Client) CalibrateNext(ctx context.Context, in CalibrateNextRequest) (CalibrateNext, error) {
	return ask[CalibrateNext](ctx, c, "/v1/calibrate-next", in)
}

// Network returns the network of a config.json, for other requests.
func (c Client) Network(ctx context.Context, in NetworkRequest) (Network, error) {
	return ask[Network](ctx, c, "/v1/network", in)
}

// Models lists the known networks.
func (c Client) Models(ctx context.Context) (Models, error) {
	return get[Models](ctx, c, "/v1/models")
}

// Accelerators lists the known device types.
func (c Client) Accelerators(ctx context.Context) (Accelerators, error) {
	return get[Accelerators](ctx, c, "/v1/accelerators")
}

// Frameworks lists the training frameworks that plans are written for: the values of Emit.
func (c Client) Frameworks(ctx context.Context) (Frameworks, error) {
	return get[Frameworks](ctx, c, "/v1/frameworks")
}

// Cards lists the performance models that are fitted on the server.
func (c Client) Cards(ctx context.Context) (Cards, error) { return get[Cards](ctx, c, "/v1/cards") }

// Sources lists the measurements by source, and whether they are used.
func (c Client) Sources(ctx context.Context) (Sources, error) {
	return get[Sources](ctx, c, "/v1/sources")
}

// Measurements counts the stored measurements by model, accelerator, source and outcome.
func (c Client) Measurements(ctx context.Context) (Measurements, error) {
	return get[Measurements](ctx, c, "/v1/measurements")
}

// RowPage returns a page of stored measurements with their provenance: that at cursor, "" = the first, of up to limit rows.
// remote.Client.Rows reads all pages.
func (c Client) RowPage(ctx context.Context, f remote.Filter, cursor string, limit int) (Rows, error) {
	q := url.Values{"model": f.Models, "accelerator": f.Accelerators, "source": f.Sources, "limit": {strconv.Itoa(limit)}}
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	return get[Rows](ctx, c, "/v1/measurements/rows?"+q.Encode())
}

// PutMeasurements stores up to 10000 measurements, given by names or figures; remote.Client.Put stores rows once however
// often it is repeated.
func (c Client) PutMeasurements(ctx context.Context, in MeasurementsRequest) (Stored, error) {
	return change[Stored](ctx, c, http.MethodPost, "/v1/measurements", in)
}

// Forget deletes the measurements of a source; with dryRun it counts them alone.
func (c Client) Forget(ctx context.Context, source, reason string, dryRun bool) (Forgotten, error) {
	q := url.Values{"source": {source}, "reason": {reason}, "dry_run": {strconv.FormatBool(dryRun)}}
	return change[Forgotten](ctx, c, http.MethodDelete, "/v1/measurements?"+q.Encode(), nil)
}

// Fit fits performance models to stored measurements again. This may take minutes.
func (c Client) Fit(ctx context.Context, in FitRequest) (FitResponse, error) {
	return change[FitResponse](ctx, c, http.MethodPost, "/v1/fit", in)
}

// Campaigns returns how far the campaigns are that measure into the store of the server.
func (c Client) Campaigns(ctx context.Context) (Campaigns, error) {
	return get[Campaigns](ctx, c, "/v1/campaigns")
}

// PostCampaign says how far a campaign is.
func (c Client) PostCampaign(ctx context.Context, in Progress) (Progress, error) {
	return change[Progress](ctx, c, http.MethodPost, "/v1/campaigns", in)
}

// VerifyStore checks all files and measurements of the store. Faults are no error.
func (c Client) VerifyStore(ctx context.Context) (Verification, error) {
	return ask[Verification](ctx, c, "/v1/store/verify", struct{}{})
}

// CompactStore gives back the disk space of deleted and replaced measurements.
func (c Client) CompactStore(ctx context.Context) (Compaction, error) {
	return change[Compaction](ctx, c, http.MethodPost, "/v1/store/compact", struct{}{})
}

// Simulate starts a simulation of scheduling policies. WaitSimulation returns its figures.
func (c Client) Simulate(ctx context.Context, in SimulationRequest) (Simulation, error) {
	return change[Simulation](ctx, c, http.MethodPost, "/v1/simulations", in)
}

// Simulations lists the last simulations, the newest first, without figures.
func (c Client) Simulations(ctx context.Context) (Simulations, error) {
	return get[Simulations](ctx, c, "/v1/simulations")
}

func simulationPath(id string) string { return "/v1/simulations/" + url.PathEscape(id) }

// Simulation returns the progress of a simulation, and its figures once it is done.
func (c Client) Simulation(ctx context.Context, id string) (Simulation, error) {
	return get[Simulation](ctx, c, simulationPath(id))
}

// Pauses between looks at a simulation.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// WaitSimulation returns a simulation once it has ended: its Status is then done, failed or cancelled.
func (c Client) WaitSimulation(ctx context.Context, id string) (Simulation, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		out, err := c.Simulation(ctx, id)
		if err != nil || out.Status != "waiting" && out.Status != "running" {
			return out, err
		}
		select {
		case <-ctx.Done():
			return out, fmt.Errorf("api: simulation %s is %s: %w", id, out.Status, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// SimulationCharts returns the data of the charts of a simulation that is done, as JSON.
func (c Client) SimulationCharts(ctx context.Context, id string) (json.RawMessage, error) {
	return c.text(ctx, simulationPath(id)+"/charts")
}

// SimulationReport returns the report of a simulation that is done, as a web page.
func (c Client) SimulationReport(ctx context.Context, id string) ([]byte, error) {
	return c.text(ctx, simulationPath(id)+"/report")
}

// DeleteSimulation deletes a simulation. One that has not ended is cancelled.
func (c Client) DeleteSimulation(ctx context.Context, id string) (Simulation, error) {
	return change[Simulation](ctx, c, http.MethodDelete, simulationPath(id), nil)
}

// Version returns version and build of the server, and the contract of its API.
func (c Client) Version(ctx context.Context) (Version, error) {
	return get[Version](ctx, c, "/v1/version")
}

// OpenAPI returns the OpenAPI document of the API.
func (c Client) OpenAPI(ctx context.Context) (json.RawMessage, error) {
	return c.text(ctx, "/openapi.json")
}

// Metrics returns figures of the server, in the text format of Prometheus.
func (c Client) Metrics(ctx context.Context) ([]byte, error) { return c.text(ctx, "/metrics") }

// Healthy reports whether the server answers.
func (c Client) Healthy(ctx context.Context) (bool, error) { return c.up(ctx, "/healthz") }

// Ready reports whether the server accepts requests: it does not during its shutdown.
func (c Client) Ready(ctx context.Context) (bool, error) { return c.up(ctx, "/readyz") }

// up reports whether a GET is answered with 200. Only 503 is no error.
func (c Client) up(ctx context.Context, path string) (bool, error) {
	_, err := c.text(ctx, path)
	var refused *remote.Error
	if errors.As(err, &refused) && refused.Status == http.StatusServiceUnavailable {
		return false, nil
	}
	return err == nil, err
}
