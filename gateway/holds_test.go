// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/internal/serving/shared"
)

// TestHoldsAreLetGo checks that two replicas together list no Cluster that the last answer let go, and one no Cluster that
// is gone, or waits for a handler that is.
func TestHoldsAreLetGo(t *testing.T) {
	r, hooks := filled(t, registrationOf("acme", handlerOf("gate", "BeforeClusterCreate", hook.Fail))), catalog.New()
	var retry int32
	var gone bool
	replica := func() (call func(retryAfter int32), report func() *status.Gateway) {
		o := newObserved(r)
		d := NewDispatcher(Config{
			Catalog: hooks, Versions: hookversion.New(hooks), Registry: r, Namespaces: fixedNamespaces{},
			Parts: shared.Parts{Codec: mandated, Observer: o.Observer, Transport: transportOf(callerFunc(func(context.Context, extension.Call) (proto.Message, error) {
				return &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, RetryAfterSeconds: retry}, nil
			}))},
		})
		reporter := &observe.Reporter{Catalog: hooks, Registry: r, Observer: o.Observer, Namespaces: fixedNamespaces{}, ClusterGone: func(string, string) bool { return gone }}
		return func(retryAfter int32) {
				t.Helper()
				retry = retryAfter
				cluster := &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"namespace":"team","name":"c"}}`)}
				if _, err := d.dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: cluster}); err != nil {
					t.Fatal(err)
				}
			}, func() *status.Gateway {
				t.Helper()
				w, g := httptest.NewRecorder(), &status.Gateway{}
				reporter.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, status.Path+"?"+status.ReleasedQuery, nil))
				if err := json.Unmarshal(w.Body.Bytes(), g); err != nil {
					t.Fatal(err)
				}
				return g
			}
	}
	first, statusOfFirst := replica()
	second, statusOfSecond := replica()
	held := func() int {
		t.Helper()
		holds, _ := status.HoldsOf([]*status.Gateway{statusOfFirst(), statusOfSecond()})
		return len(holds)
	}
	first(30)
	if n := held(); n != 1 {
		t.Errorf("a Cluster waits: %d holds", n)
	}
	second(0)
	if n := len(statusOfFirst().Holds); n != 1 || held() != 0 {
		t.Errorf("the other replica has let it go: %d holds of the first, and %d of both", n, held())
	}
	first(30)
	if n := held(); n != 1 {
		t.Errorf("it waits again: %d holds", n)
	}
	gone = true
	if n := held(); n != 0 {
		t.Errorf("the Cluster is gone: %d holds", n)
	}
	gone = false
	r.Remove("acme")
	if n := len(statusOfFirst().Holds); n != 0 {
		t.Errorf("the handler is gone: %d holds", n)
	}
}
