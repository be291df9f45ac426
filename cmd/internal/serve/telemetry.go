package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/urfave/cli/v2"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/server"
)

// lastExport bounds the time to send what is left when the server ends.
const lastExport = 5 * time.Second

// signal is one kind of telemetry. Its variables are those of the OpenTelemetry
// specification.
type signal struct{ name, path string }

var (
	traces  = signal{"TRACES", "v1/traces"}
	metrics = signal{"METRICS", "v1/metrics"}
)

// endpoint returns where to send g, "" for what its variables say, and whether to
// send it at all: base, or a variable, has an endpoint, and no variable turns it off.
//
// Source: OpenTelemetry specification, environment variables and OTLP exporter.
func (g signal) endpoint(base string) (to string, on bool, err error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return "", false, nil
	}
	switch name := "OTEL_" + g.name + "_EXPORTER"; os.Getenv(name) {
	case "", "otlp":
	case "none":
		return "", false, nil
	default:
		return "", false, fail.Usagef("serve: $%s %q: want otlp or none", name, os.Getenv(name))
	}
	variable := "OTEL_EXPORTER_OTLP_" + g.name
	if base == "" && os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv(variable+"_ENDPOINT") == "" {
		return "", false, nil
	}
	if p := cmp.Or(os.Getenv(variable+"_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf"); p != "http/protobuf" {
		return "", false, fail.Usagef("serve: $OTEL_EXPORTER_OTLP_PROTOCOL %q: want http/protobuf", p)
	}
	if base == "" {
		return "", true, nil
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", false, fail.Usagef("serve: --otlp-endpoint %q: want a form like http://127.0.0.1:4318", base)
	}
	return u.JoinPath(g.path).String(), true, nil
}

// telemetry makes the server send traces and metrics to an OpenTelemetry collector,
// if --otlp-endpoint or the environment names one. done sends what is left.
func telemetry(c *cli.Context, o *server.Options) (done func(), err error) {
	var ends []func(context.Context) error
	done = func() {
		ctx, cancel := context.WithTimeout(context.Background(), lastExport)
		defer cancel()
		for _, end := range ends {
			if err := end(ctx); err != nil {
				o.Log.Warn("telemetry: " + err.Error()) // a collector that is away is no failure of the server
			}
		}
	}
	base := c.String("otlp-endpoint")
	tracesTo, traced, err1 := traces.endpoint(base)
	metricsTo, metered, err2 := metrics.endpoint(base)
	if err := errors.Join(err1, err2); err != nil || !traced && !metered {
		return done, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Log.Warn("telemetry: " + err.Error()) }))
	about, err := resource.New(c.Context, resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(semconv.ServiceName("pacer"), semconv.ServiceVersion(o.Version)), resource.WithFromEnv())
	if err != nil {
		return done, fail.Usagef("serve: $OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if traced {
		var options []otlptracehttp.Option
		if tracesTo != "" {
			options = append(options, otlptracehttp.WithEndpointURL(tracesTo))
		}
		exporter, err := otlptracehttp.New(c.Context, options...)
		if err != nil {
			return done, fmt.Errorf("serve: telemetry: %w", err)
		}
		p := trace.NewTracerProvider(trace.WithResource(about), trace.WithBatcher(exporter))
		o.Tracing = p
		ends = append(ends, p.Shutdown)
	}
	if metered {
		var options []otlpmetrichttp.Option
		if metricsTo != "" {
			options = append(options, otlpmetrichttp.WithEndpointURL(metricsTo))
		}
		exporter, err := otlpmetrichttp.New(c.Context, options...)
		if err != nil {
			return done, fmt.Errorf("serve: telemetry: %w", err)
		}
		o.Registry = prometheus.NewRegistry()
		// Clients choose the host that they name, so it is no attribute: the specification has it as optional, with a warning.
		hostless := metric.NewView(metric.Instrument{Name: "http.server.*"}, metric.Stream{AttributeFilter: attribute.NewDenyKeysFilter(semconv.ServerAddressKey, semconv.ServerPortKey)})
		p := metric.NewMeterProvider(metric.WithResource(about), metric.WithView(hostless), metric.WithReader(
			metric.NewPeriodicReader(exporter, metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(o.Registry))))))
		o.Meters = p
		ends = append(ends, p.Shutdown)
	}
	return done, nil
}
