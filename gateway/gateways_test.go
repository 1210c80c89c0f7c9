// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/registry"
)

// registerGateway registers inner with f as any extension is: by discovery, with its checks.
func (f *fixture) registerGateway(t *testing.T, name string, inner *httptest.Server) {
	t.Helper()
	client := extension.NewREST(extension.Config{Catalog: allHooks, Codec: mandated})
	defer client.Close()
	reg := registry.Registration{Name: name, ClientConfig: registry.ClientConfig{
		URL: inner.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: inner.Certificate().Raw}),
	}}
	found, err := client.Discover(t.Context(), reg.ClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Skipped) > 0 {
		t.Errorf("discovery of a gateway skips %v", found.Skipped)
	}
	reg.Handlers = found.Handlers
	if err := f.registry.Apply(reg); err != nil {
		t.Fatal(err)
	}
	f.registry.SetReady()
}

// A gateway is an extension itself: one behind another is discovered, called and understood like any other.
func TestGatewaysChain(t *testing.T) {
	inner, outer := newFixture(t, nil), newFixture(t, nil)
	callIDs := make(chan string, 1)
	inner.register(t, "BeforeClusterCreate", hook.Fail, 20*time.Second, func(w http.ResponseWriter, r *http.Request) {
		callIDs <- r.Header.Get(CallIDHeader)
		_, _ = fmt.Fprint(w, `{"status":"Success","message":"wait for the network","retryAfterSeconds":7,"hint":1}`)
	})
	outer.registerGateway(t, "sidecar", inner.rest)

	resp := outer.post(t, createPath, createBody)
	want := `{"kind":"BeforeClusterCreateResponse","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1",` +
		`"status":"Success","message":"wait for the network","retryAfterSeconds":7,"hint":1}`
	if resp.code != http.StatusOK || string(resp.body) != want {
		t.Errorf("got %s: %s\nwant %s", resp.status, resp.body, want)
	}
	if got := <-callIDs; got != resp.header.Get(CallIDHeader) {
		t.Errorf("the extension saw call %q, the caller %q", got, resp.header.Get(CallIDHeader))
	}
}

// The outer gateway reports failures behind the inner one by handler; the inner timeout is reached first.
func TestFailuresComeThroughAChain(t *testing.T) {
	inner, outer := newFixture(t, nil), newFixture(t, nil)
	inner.register(t, "GeneratePatches", hook.Fail, time.Second, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	outer.registerGateway(t, "sidecar", inner.rest)
	e, ok := outer.registry.Snapshot().Handler("v--acme.sidecar")
	if !ok || e.Handler.Timeout <= time.Second {
		t.Fatalf("the outer gateway waits for %s, not longer than the inner one", e.Handler.Timeout)
	}
	// A busy machine may take longer than the difference.
	outer.registry.SetPolicies("sidecar", registry.Policies{All: &policy.Policy{Timeout: 30 * time.Second}})
	resp := outer.post(t, "/hooks.runtime.cluster.x-k8s.io/v1alpha1/generatepatches/v--acme.sidecar", `{"items":[]}`)
	const want = `handler \"v--acme.sidecar\": call extension: handler \"v.acme\": no answer within its timeout of 1s`
	if resp.code != http.StatusGatewayTimeout || !strings.Contains(string(resp.body), want) {
		t.Errorf("got %s: %s\nwant %s", resp.status, resp.body, want)
	}
}

// What a gateway decides about a call has the same kind and text for the callers of the gateway in front of it, whose
// circuits stay closed. Its failure policy hides what it may, and not more.
func TestErrorsOfGateways(t *testing.T) {
	decided := map[hook.Kind]bool{
		hook.InvalidRequest: true, hook.UnknownHandler: true, hook.Ambiguous: true, hook.TooLarge: true, hook.NotReady: true,
		hook.Conversion: true, hook.Unreachable: true, hook.Timeout: true, hook.BadResponse: true, hook.Policy: true,
		hook.Overloaded: true, hook.Loop: true,
	}
	for protocolName, protocol := range protocols {
		for _, kind := range hook.Kinds() {
			for _, policy := range []hook.FailurePolicy{hook.Fail, hook.Ignore} {
				t.Run(protocolName+kind.String()+string(policy), func(t *testing.T) {
					t.Parallel()
					inner, hub := newFixture(t, nil), newFixture(t, nil)
					var fails atomic.Bool
					fails.Store(true)
					inner.failWith = func() error {
						if !fails.Load() {
							return nil
						}
						return hook.Errorf(kind, "a text of its own").WithHandler("v.acme").WithRetryAfter(time.Hour)
					}
					inner.register(t, "BeforeClusterCreate", hook.Fail, 20*time.Second, func(w http.ResponseWriter, _ *http.Request) {
						_, _ = io.WriteString(w, `{"status":"Success","message":"well"}`)
					})
					reg := registrationOf("inner", handlerOf("v--acme", "BeforeClusterCreate", policy))
					reg.ClientConfig, reg.Handlers[0].Timeout = inner.address(t, protocol), 20*time.Second
					if err := hub.registry.Apply(reg); err != nil {
						t.Fatal(err)
					}
					hub.registry.SetReady()
					call := func() answered { return hub.post(t, createPath+"/v--acme.inner", createBody) }
					for range limits.DefaultFailuresInARow + 1 {
						resp := call()
						got, text := resp.header.Get(ErrorKindHeader), string(resp.body)
						switch {
						case !decided[kind]:
							if policy == hook.Fail && got != "BadResponse" && got != "Unreachable" && got != "Canceled" {
								t.Fatalf("got %s: %s", got, text)
							}
						case policy == hook.Ignore && kind.Ignorable():
							if got != "" || !strings.Contains(text, `"status":"Success","message":"ignored: handler \"v--acme.inner\": `+kind.String()) {
								t.Fatalf("got %s: %s", got, text)
							}
						case got != kind.String() || resp.code != kind.HTTPStatus() ||
							!strings.Contains(text, `handler \"v--acme.inner\": call extension: handler \"v.acme\": a text of its own`):
							t.Fatalf("got %d %s: %s", resp.code, got, text)
						}
					}
					if !decided[kind] {
						return
					}
					fails.Store(false)
					if resp := call(); !strings.Contains(string(resp.body), `"status":"Success","message":"well"`) {
						t.Errorf("a call that can be answered: %s: %s", resp.status, resp.body)
					}
				})
			}
		}
	}
}

// Five Clusters that cannot be converted leave a sixth that can, behind a gateway that converts and one that does not.
func TestConversionBehindAGateway(t *testing.T) {
	for name, protocol := range protocols {
		t.Run(name, func(t *testing.T) {
			inner, hub := newFixture(t, nil), newFixture(t, nil)
			inner.understands = convert.V1Beta1
			inner.register(t, "BeforeClusterCreate", hook.Ignore, 20*time.Second, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, `{"status":"Success"}`)
			})
			hub.leadTo(t, "inner", inner.address(t, protocol))
			unknown := strings.Replace(createBody, "cluster.x-k8s.io/v1beta2", "cluster.x-k8s.io/v2", 1)
			for range limits.DefaultFailuresInARow {
				resp := hub.post(t, createPath, unknown)
				if got := resp.header.Get(ErrorKindHeader); got != "Conversion" || resp.code != http.StatusInternalServerError {
					t.Fatalf("got %s of kind %s: %s", resp.status, got, resp.body)
				}
			}
			if resp := hub.post(t, createPath, createBody); resp.code != http.StatusOK {
				t.Errorf("a Cluster that can be converted: %s: %s", resp.status, resp.body)
			}
		})
	}
}
