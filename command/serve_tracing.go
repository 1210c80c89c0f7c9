// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// tracingOptions are the flags about traces.
type tracingOptions struct {
	endpoint string
	insecure bool
	ratio    float64
}

func (o *tracingOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.endpoint, "otlp-endpoint", "",
		"host:port of an OpenTelemetry collector (OTLP over gRPC) to send traces to; without this flag, no traces are "+
			"sent")
	f.BoolVar(&o.insecure, "otlp-insecure", false, "send traces without TLS")
	f.Float64Var(&o.ratio, "trace-ratio", 1,
		"share of the calls, from 0 to 1, that start a trace, unless the caller has decided whether to trace")
}

func (o *tracingOptions) check() error {
	if !(o.ratio >= 0 && o.ratio <= 1) { // NaN is neither
		return cmdline.Usagef("--trace-ratio: want 0 to 1, got %v", o.ratio)
	}
	return nil
}

// start returns the provider of tracers, and a function that sends the spans that are left and stops it.
func (o *tracingOptions) start(ctx context.Context) (trace.TracerProvider, func() error, error) {
	if o.endpoint == "" {
		return noop.NewTracerProvider(), func() error { return nil }, nil
	}
	options := []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(o.endpoint)}
	if o.insecure {
		options = append(options, otlptracegrpc.WithInsecure())
	}
	exporter, err := otlptracegrpc.New(ctx, options...)
	if err != nil {
		return nil, nil, fmt.Errorf("send traces to %s (--otlp-endpoint): %w", o.endpoint, err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(o.ratio))),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "hookgate"), attribute.String("service.version", cmdline.CurrentBuild().Version))),
	)
	stop := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			return fmt.Errorf("send the last traces: %w", err)
		}
		return nil
	}
	return provider, stop, nil
}
