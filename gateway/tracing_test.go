// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc/metadata"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

const (
	callersTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersSpan  = "00f067aa0ba902b7"
	traceparent  = "00-" + callersTrace + "-" + callersSpan + "-01"
)

// A trace goes from the caller, of either protocol, through the gateway to the extension; also where the gateway itself
// exports nothing.
func TestTraceContextReachesExtensions(t *testing.T) {
	for name, export := range map[string]bool{"Exporting": true, "NotExporting": false} {
		t.Run(name, func(t *testing.T) {
			recorder := tracetest.NewSpanRecorder()
			var provider trace.TracerProvider = noop.NewTracerProvider()
			if export {
				provider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
			}
			f := newFixture(t, provider)
			headers := make(chan http.Header, 2)
			f.register(t, "BeforeClusterCreate", hook.Fail, 30*time.Second, func(w http.ResponseWriter, r *http.Request) {
				headers <- r.Header.Clone()
				_, _ = io.WriteString(w, `{"status":"Success"}`)
			})

			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.rest.URL+createPath, strings.NewReader(createBody))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Traceparent", traceparent)
			resp, err := f.rest.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", traceparent)
			if _, err := hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn).BeforeClusterCreate(ctx, &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")}); err != nil {
				t.Fatal(err)
			}
			for _, protocol := range []string{"REST", "gRPC"} {
				h := <-headers
				got := strings.Split(h.Get("Traceparent"), "-")
				if len(got) != 4 || got[1] != callersTrace {
					t.Errorf("%s: the extension got traceparent %q, want the trace %s", protocol, h.Get("Traceparent"), callersTrace)
				} else if (got[2] == callersSpan) == export {
					t.Errorf("%s: the extension's parent is %s; want the gateway's own span only where it exports", protocol, got[2])
				}
				if h.Get(CallIDHeader) == "" {
					t.Errorf("%s: the extension got no call id", protocol)
				}
			}
			if !export {
				return
			}
			f.rest.Close()
			_ = f.conn.Close()
			byName := map[string]int{}
			for _, s := range recorder.Ended() {
				byName[s.Name()]++
				if s.SpanContext().TraceID().String() != callersTrace {
					t.Errorf("span %q is of trace %s", s.Name(), s.SpanContext().TraceID())
				}
			}
			if byName["hookgate BeforeClusterCreate"] != 2 || byName["handler v.acme"] != 2 {
				t.Errorf("got spans %v, want one of the call and one of the handler for each protocol", byName)
			}
		})
	}
}
