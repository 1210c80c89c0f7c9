// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/internal/serving/shared"
	"github.com/hookgate/hookgate/test/samples"
)

// BenchmarkRESTMux is the CPU time of what the gateway does for calls of each size, without connections, and of the part
// in which the mux searches its patterns for the path.
func BenchmarkRESTMux(b *testing.B) {
	_, front := benchFront(b)
	search := runtime.NewServeMux(runtime.WithDisablePathLengthFallback())
	for _, h := range calledMostLast(allHooks.Hooks()) {
		for _, path := range []string{h.Path(""), h.Path("") + "/{handler}"} {
			if err := search.HandlePath(http.MethodPost, path, func(http.ResponseWriter, *http.Request, map[string]string) {}); err != nil {
				b.Fatal(err)
			}
		}
	}
	for name, of := range map[string]struct {
		path string
		body []byte
	}{
		"S": {hookOf(b, "BeforeClusterCreate").Path("create.acme"), samples.S()},
		"M": {hookOf(b, "GeneratePatches").Path("patch.acme"), samples.M()},
		"L": {hookOf(b, "GeneratePatches").Path("patch.acme"), samples.L()},
	} {
		for part, handler := range map[string]http.Handler{"call": front, "search": search} {
			b.Run(name+"/"+part, func(b *testing.B) {
				began := cpuTime(b)
				for b.Loop() {
					w := httptest.NewRecorder()
					handler.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodPost, of.path, bytes.NewReader(of.body)))
					if w.Code != http.StatusOK {
						b.Fatal(w.Body)
					}
				}
				b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N), "cpu-ns/op")
			})
		}
		b.Run(name+"/neither", func(b *testing.B) { // what the benchmark itself does
			began := cpuTime(b)
			for b.Loop() {
				_ = httptest.NewRecorder()
				_ = httptest.NewRequestWithContext(b.Context(), http.MethodPost, of.path, bytes.NewReader(of.body))
			}
			b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N), "cpu-ns/op")
		})
	}
}

// benchFront returns a dispatcher whose handlers answer at once, and the front before it.
func benchFront(b *testing.B) (*Dispatcher, *REST) {
	b.Helper()
	r := filled(b, registrationOf("acme", handlerOf("create", "BeforeClusterCreate", hook.Fail), handlerOf("patch", "GeneratePatches", hook.Fail)))
	d := NewDispatcher(Config{
		Catalog: allHooks, Versions: allVersions, Registry: r, Namespaces: fixedNamespaces{},
		Parts: shared.Parts{
			Codec: mandated,
			Observer: observe.NewObserver(observe.NewMetrics(prometheus.NewRegistry(), r, allHooks, "test"), noop.NewTracerProvider(),
				slog.New(slog.DiscardHandler), convert.NewLosses(nil)),
			Transport: func(_ context.Context, c extension.Call) (extension.Result, error) {
				return extension.Result{Response: outcome.New(c.Hook, 1, "")}, nil
			},
		},
	})
	front, err := NewREST(d, NewServices(d))
	if err != nil {
		b.Fatal(err)
	}
	return d, front
}

// cpuTime returns the nanoseconds of CPU time of the process, in which a busy machine makes little difference.
func cpuTime(b *testing.B) int64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}
