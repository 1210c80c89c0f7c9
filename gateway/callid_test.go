// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

func TestCallIDs(t *testing.T) {
	longest := strings.Repeat("x", 64)
	for proposed, taken := range map[string]bool{
		"my-call": true, "A.b_9-z": true, longest: true, "": false, longest + "x": false, "a b": false, "a/b": false, "ä": false, "a\n": false, "a:": false,
		"`": false, "{": false, "@": false, "[": false, "Z": true, "a": true, "0": true,
	} {
		if got := callIDOr(proposed); (got == proposed) != taken || got == "" || len(got) > 64 {
			t.Errorf("%q becomes %q", proposed, got)
		}
	}
	if first, second := callIDOr(""), callIDOr(""); first == second {
		t.Error("two calls have the same id")
	}
}

// TestNoHandler holds that both fronts say of an answer that no handler was asked, and of no other.
func TestNoHandler(t *testing.T) {
	f := newFixture(t, nil)
	f.register(t, "BeforeClusterCreate", hook.Ignore, 20*time.Second, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"status":"Success"}`)
	})
	hooks := hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn)
	cluster := &hooksv1alpha1.RawExtension{Raw: []byte(createCluster)}
	var with, without metadata.MD
	_, err := hooks.BeforeClusterCreate(t.Context(), &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: cluster}, grpc.Header(&with))
	if err != nil {
		t.Fatal(err)
	}
	_, err = hooks.BeforeClusterDelete(t.Context(), &hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: cluster}, grpc.Header(&without))
	if err != nil {
		t.Fatal(err)
	}
	deleted := f.post(t, strings.Replace(createPath, "create", "delete", 1), strings.Replace(createBody, "Create", "Delete", 1)).header
	created := f.post(t, createPath, createBody).header
	got := []string{first(with.Get(HandlersHeader)), first(without.Get(HandlersHeader)), created.Get(HandlersHeader), deleted.Get(HandlersHeader)}
	if diff := cmp.Diff([]string{"", "0", "", "0"}, got); diff != "" {
		t.Error(diff)
	}
}
