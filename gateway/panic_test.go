// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/labels"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

// explosive is a selector that cannot be asked: a panic outside of any handler's call.
type explosive struct{ labels.Selector }

func (explosive) Empty() bool                { return false }
func (explosive) Matches(labels.Labels) bool { panic("out of cheese") }
func (explosive) DeepCopySelector() labels.Selector {
	return explosive{}
}

// A panic anywhere is the error of its own call, and the next call is answered.
func TestPanicsEndOnlyTheirOwnCall(t *testing.T) {
	f := newFixture(t, nil)
	f.register(t, "BeforeClusterDelete", hook.Fail, 30*time.Second, func(http.ResponseWriter, *http.Request) {})
	reg := registrationOf("bad", handlerOf("v", "BeforeClusterCreate", hook.Fail))
	reg.NamespaceSelector = explosive{labels.Nothing()}
	if err := f.registry.Apply(reg); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		resp := f.post(t, createPath, createBody)
		if resp.code != http.StatusInternalServerError || !strings.Contains(string(resp.body), "internal error: see the gateway's log") {
			t.Errorf("REST: got %s: %s", resp.status, resp.body)
		}
		_, err := hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn).BeforeClusterCreate(t.Context(), &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")})
		if st := status.Convert(err); st.Code() != codes.Internal || strings.Contains(st.Message(), "cheese") {
			t.Errorf("gRPC: got %v", err)
		}
	}
	if resp := f.post(t, "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery", "{}"); resp.code != http.StatusOK {
		t.Errorf("after the panics, discovery says %s", resp.status)
	}
	f.rest.Close()
	if got := strings.Count(f.log.String(), "out of cheese"); got != 4 {
		t.Errorf("the log has %d panics, want 4:\n%s", got, f.log)
	}
}
