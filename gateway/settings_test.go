// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/outcome"
)

// The request's settings override the ExtensionConfig's, neither map is changed, and the caller's body is sent on only
// if nothing was merged.
func TestSettingsAndBody(t *testing.T) {
	tests := map[string]struct {
		reason              string
		registered, request map[string]string
		want                map[string]string
		body                bool
	}{
		"None":        {"nothing to merge", nil, nil, nil, true},
		"Request":     {"nothing to merge", nil, map[string]string{"a": "1"}, map[string]string{"a": "1"}, true},
		"Empty":       {"an empty map is none", map[string]string{}, map[string]string{"a": "1"}, map[string]string{"a": "1"}, true},
		"Registered":  {"the body lacks them", map[string]string{"a": "1"}, nil, map[string]string{"a": "1"}, false},
		"Both":        {"both count", map[string]string{"a": "1"}, map[string]string{"b": "2"}, map[string]string{"a": "1", "b": "2"}, false},
		"Conflict":    {"the request wins", map[string]string{"a": "1", "c": "3"}, map[string]string{"a": "2"}, map[string]string{"a": "2", "c": "3"}, false},
		"EmptyString": {"an empty value is a value", map[string]string{"a": "1"}, map[string]string{"a": ""}, map[string]string{"a": ""}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reg := registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail))
			reg.Settings = tc.registered
			r := filled(t, reg)
			entry, _ := r.Snapshot().Handler("v.a")
			registered, request := maps.Clone(entry.Registration.Settings), maps.Clone(tc.request)
			req := &hooksv1alpha1.BeforeClusterCreateRequest{
				Cluster: clusterIn("n"), Settings: tc.request, UnknownMembers: map[string]*hooksv1alpha1.JSON{"new": {Raw: []byte("1")}},
			}
			want := proto.CloneOf(req)
			want.Settings = tc.want
			var got extension.Call
			d := newDispatcher(r, fixedNamespaces{}, callerFunc(func(_ context.Context, c extension.Call) (proto.Message, error) {
				got = c
				return outcome.Success(c.Hook), nil
			}))
			if _, err := d.Dispatch(t.Context(), Request{Hook: hookOf(t, "BeforeClusterCreate"), Message: req, Body: []byte("body")}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(proto.Message(want), got.Request, protocmp.Transform()); diff != "" {
				t.Errorf("%s: the handler got -want +got\n%s", tc.reason, diff)
			}
			if (got.Body != nil) != tc.body || (got.Request == req) != tc.body {
				t.Errorf("%s: the handler got the body %q and the request itself: %t", tc.reason, got.Body, got.Request == req)
			}
			if !maps.Equal(req.GetSettings(), request) || !maps.Equal(entry.Registration.Settings, registered) {
				t.Errorf("the settings of the request are %v, those registered %v", req.GetSettings(), entry.Registration.Settings)
			}
		})
	}
	// A request without the member has no settings.
	req := &hooksv1alpha1.DiscoveryRequest{}
	if got := withSettings(req, map[string]string{"a": "1"}); got != proto.Message(req) {
		t.Errorf("got %v", got)
	}
}
