// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/calls/selection"
)

// Both fronts pass on when to try again: in whole seconds, never fewer than it takes, and nothing if it is not known.
func TestRetryAfter(t *testing.T) {
	f := newFixture(t, nil)
	front, err := NewREST(f.services.dispatcher, f.services)
	if err != nil {
		t.Fatal(err)
	}
	for after, want := range map[time.Duration]string{
		0: "", time.Nanosecond: "1", time.Second: "1", time.Second + 1: "2", 90 * time.Second: "90",
	} {
		t.Run(after.String(), func(t *testing.T) {
			e := hook.Errorf(hook.Overloaded, "the memory is used up").WithRetryAfter(after)
			ctx, in := begin(t.Context(), f.observer, "REST", "", nil, metadataCarrier{}, "")
			w := httptest.NewRecorder()
			front.writeError(w, in, e.WithHandler("v.acme"))
			if ctx.Err() != nil || w.Code != 503 || w.Header().Get("Retry-After") != want {
				t.Errorf("REST: got %d, Retry-After %q, want %q", w.Code, w.Header().Get("Retry-After"), want)
			}
			var delay time.Duration
			for _, d := range status.Convert(grpcError(e)).Details() {
				if info, ok := d.(*errdetails.RetryInfo); ok {
					delay = info.GetRetryDelay().AsDuration()
				}
			}
			if delay != after {
				t.Errorf("gRPC: got a delay of %s, want %s", delay, after)
			}
			targets := []selection.Target{{}, {}}
			_, merged := outcome.Merge(hookOf(t, "BeforeClusterCreate"), selection.NamesOf(targets), []outcome.Answer{{Err: e}, {Err: e}})
			if got := outcome.ErrorOf(merged); got.RetryAfter != after || got.Kind != hook.Overloaded {
				t.Errorf("merged: got %s after %s", got.Kind, got.RetryAfter)
			}
		})
	}
}
