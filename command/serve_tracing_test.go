// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"net"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// collected is an OpenTelemetry collector that records spans.
type collected struct {
	collector.UnimplementedTraceServiceServer
	requests chan *collector.ExportTraceServiceRequest
}

func (c *collected) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.requests <- r
	return &collector.ExportTraceServiceResponse{}, nil
}

func TestTracesAreSentToTheCollector(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collected{requests: make(chan *collector.ExportTraceServiceRequest, 1)}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	provider, stop, err := (&tracingOptions{endpoint: listener.Addr().String(), insecure: true, ratio: 1}).start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, span := provider.Tracer("test").Start(t.Context(), "a call")
	span.End()
	if err := stop(); err != nil { // sends what is left
		t.Fatal(err)
	}
	got := (<-c.requests).GetResourceSpans()
	if len(got) != 1 || len(got[0].GetScopeSpans()) != 1 || got[0].GetScopeSpans()[0].GetSpans()[0].GetName() != "a call" {
		t.Fatalf("the collector got %v", got)
	}
	attributes := map[string]string{}
	for _, a := range got[0].GetResource().GetAttributes() {
		attributes[a.GetKey()] = a.GetValue().GetStringValue()
	}
	if attributes["service.name"] != "hookgate" {
		t.Errorf("the resource is %v", attributes)
	}
}

func TestNoTracesAreMadeUnlessAsked(t *testing.T) {
	provider, stop, err := (&tracingOptions{ratio: 1}).start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, span := provider.Tracer("test").Start(t.Context(), "a call"); span.IsRecording() {
		t.Error("a span is recorded without --otlp-endpoint")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
