// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/network/endpoint"
)

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestEmptyAnswerAfterTheDeadline has net/http return the answer of a server that noticed that its client had left.
func TestEmptyAnswerAfterTheDeadline(t *testing.T) {
	hooks := catalog.New()
	discovery, _ := hooks.ByName(hook.Discovery)
	for name, tt := range map[string]struct {
		end  func(context.Context) (context.Context, context.CancelFunc)
		want hook.Kind
	}{
		"Timeout": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Millisecond)
		}, hook.Timeout},
		"Canceled": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Millisecond, cancel)
			return ctx, cancel
		}, hook.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := tt.end(t.Context())
			defer cancel()
			c := &Client{
				config: Config{Endpoint: &endpoint.Endpoint{Scheme: "https", Authority: "hooks.example"}, Codec: codec.New(hooks)},
				http: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
					<-r.Context().Done()
					return httptest.NewRecorder().Result(), nil
				})},
			}
			r := c.Send(ctx, discovery, "", []byte("{}"))
			if r.Failure == nil || r.Failure.Kind != tt.want {
				t.Errorf("got %+v, want kind %v", r, tt.want)
			}
		})
	}
}
