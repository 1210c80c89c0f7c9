// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/hookversions"
	v1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1"
	v1alpha1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1alpha1"
	v1beta1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1beta1"
)

// linked calls a handler that implements a version of BeforeNodeDrain through the link, in v1.
func linked(
	t *testing.T, version string, req proto.Message, next extension.Caller,
) (result extension.Result, sent *extension.Call, err error) {
	t.Helper()
	hooks := hookversions.New()
	h, _ := hooks.ByName(hookversions.BeforeNodeDrain)
	implemented := hook.GroupVersionHook{
		Group: hookversions.Group, Version: version, Hook: hookversions.BeforeNodeDrain,
	}
	call := extension.Call{
		Hook: h, Request: req, Body: []byte("{}"),
		Handler: &registry.Entry{Name: "a.x", Handler: registry.Handler{Name: "a", Hook: implemented}},
	}
	before := call
	caller := convertVersions(hookversions.NewConverter(hooks))(func(ctx context.Context, c extension.Call) (extension.Result, error) {
		sent = &c
		return next(ctx, c)
	})
	result, err = caller(t.Context(), call)
	if call.Hook != before.Hook || call.Request != before.Request {
		t.Error("the call was changed")
	}
	return result, sent, err
}

func answersLosing(m proto.Message, lost ...string) extension.Caller {
	return func(context.Context, extension.Call) (extension.Result, error) {
		return extension.Result{Response: m, Sent: 1, Received: 2, Lost: lost}, nil
	}
}

// Losses of the request, of the links behind and of the answer are all in the result, in this order.
func TestLinkConvertsThereAndBack(t *testing.T) {
	result, sent, err := linked(t, "v1alpha1", &v1.BeforeNodeDrainRequest{NodeName: "n", Reason: "r"},
		answersLosing(&v1alpha1.BeforeNodeDrainResponse{Ticket: "t", Urgent: new(false)}, "cluster.spec.x"))
	if err != nil {
		t.Fatal(err)
	}
	want := &v1alpha1.BeforeNodeDrainRequest{Node: "n"}
	if diff := cmp.Diff(want, sent.Request, protocmp.Transform()); diff != "" || sent.Hook.Version != "v1alpha1" {
		t.Errorf("%s was sent: -want +got:\n%s", sent.Hook, diff)
	}
	if sent.Body != nil || sent.Handler.Name != "a.x" {
		t.Errorf("the body %q of the caller was sent to %s", sent.Body, sent.Handler.Name)
	}
	answer := &v1.BeforeNodeDrainResponse{TicketId: "t", Priority: 5}
	if diff := cmp.Diff(answer, result.Response, protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"reason", "cluster.spec.x", "urgent"}, result.Lost); diff != "" {
		t.Errorf("lost: -want +got:\n%s", diff)
	}
	if result.Sent != 1 || result.Received != 2 {
		t.Errorf("sizes %d, %d", result.Sent, result.Received)
	}
}

func TestLinkRefuses(t *testing.T) {
	group := hookversions.Group
	for name, tc := range map[string]struct {
		version  string
		req      proto.Message
		response proto.Message
		want     string
	}{
		"UnknownVersion": {
			version: "v2", req: &v1.BeforeNodeDrainRequest{},
			want: "convert request: the handler implements " + group + "/v2/BeforeNodeDrain, which the gateway does not serve; " +
				"the handler must implement " + group + "/v1/BeforeNodeDrain",
		},
		"RemovedVersion": {
			version: "v0alpha1", req: &v1.BeforeNodeDrainRequest{},
			want: "convert request: the handler implements " + group + "/v0alpha1/BeforeNodeDrain, which the gateway does not serve; " +
				"the handler must implement " + group + "/v1/BeforeNodeDrain",
		},
		"Request": {
			version: "v1beta1", req: &v1.PlanDrainsRequest{},
			want: "convert request from " + group + "/v1 to " + group + "/v1beta1: " +
				"hookversions.v1.PlanDrainsRequest is not a hookversions.v1.BeforeNodeDrainRequest",
		},
		"Answer": {
			version: "v1beta1", req: &v1.BeforeNodeDrainRequest{}, response: &v1beta1.PlanDrainsResponse{},
			want: "convert answer from " + group + "/v1beta1 to " + group + "/v1: " +
				"hookversions.v1beta1.PlanDrainsResponse is not a hookversions.v1beta1.BeforeNodeDrainResponse",
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, sent, err := linked(t, tc.version, tc.req, answersLosing(tc.response))
			if err == nil || err.Error() != tc.want || hook.KindOf(err) != hook.Conversion {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
			if result.Response != nil {
				t.Errorf("an error comes with the answer %v", result.Response)
			}
			if (sent != nil) != (tc.response != nil) {
				t.Errorf("the handler was called with %v", sent)
			}
		})
	}
}
