// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

func TestInJSON(t *testing.T) {
	for _, tc := range []struct {
		message proto.Message
		field   string
		want    bool
	}{
		{&hooksv1alpha1.BeforeClusterCreateRequest{}, "handler", false},
		{&hooksv1alpha1.BeforeClusterCreateRequest{}, "settings", true},
		{&hooksv1alpha1.BeforeClusterCreateRequest{}, "unknown_members", false},
		{&hooksv1alpha1.DiscoveryResponse{}, "handlers", true},
		{&hooksv1alpha1.ExtensionHandler{}, "name", true},
		{&hooksv1alpha1.ExtensionHandler{}, "cluster_api_version", false},
		{&hooksv1alpha1.ExtensionHandler{}, "unknown_members", false},
	} {
		d := tc.message.ProtoReflect().Descriptor()
		if got := InJSON(d.Fields().ByName(protoreflect.Name(tc.field))); got != tc.want {
			t.Errorf("InJSON(%s.%s) = %t", d.Name(), tc.field, got)
		}
	}
}

func TestShallowSharesFields(t *testing.T) {
	m := &hooksv1alpha1.BeforeClusterCreateRequest{Handler: "h", Settings: map[string]string{"a": "b"}}
	c := Shallow(m.ProtoReflect()).Interface().(*hooksv1alpha1.BeforeClusterCreateRequest)
	c.Handler = "other"
	c.Settings["c"] = "d"
	if m.GetHandler() != "h" || len(m.GetSettings()) != 2 {
		t.Errorf("got %v: fields are to be its own, and their values shared", m)
	}
}

// Fields are copied only if they have the same name and kind.
func TestCopySame(t *testing.T) {
	from := &hooksv1alpha1.DiscoveryResponse{
		Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, Message: "m",
		Handlers: []*hooksv1alpha1.ExtensionHandler{{Name: "a"}},
	}
	same := &hooksv1alpha1.DiscoveryResponse{}
	CopySame(same.ProtoReflect(), from.ProtoReflect())
	if !proto.Equal(same, from) || same.GetHandlers()[0] != from.GetHandlers()[0] {
		t.Errorf("got %v, want the same handlers", same)
	}
	other := &hooksv1alpha1.BeforeClusterCreateResponse{}
	CopySame(other.ProtoReflect(), from.ProtoReflect())
	if other.GetStatus() != from.GetStatus() || other.GetMessage() != "m" {
		t.Errorf("got %v", other)
	}
}

func TestStatusOfAnswers(t *testing.T) {
	m := &hooksv1alpha1.BeforeClusterCreateResponse{}
	SetStatus(m, Failure, "no")
	if got, ok := StatusOf(m); !ok || got != Failure || MessageOf(m) != "no" {
		t.Errorf("got %v, %t, %q", got, ok, MessageOf(m))
	}
	SetStatus(m, Success, "")
	if got, _ := StatusOf(m); got != Success || MessageOf(m) != "no" {
		t.Errorf("got %v, %q: an empty message leaves the old one", got, MessageOf(m))
	}
	ChangeMessage(m, strings.ToUpper)
	if MessageOf(m) != "NO" {
		t.Errorf("got %q, want NO", MessageOf(m))
	}
	for _, without := range []proto.Message{nil, &hooksv1alpha1.BeforeClusterCreateResponse{}, &hooksv1alpha1.BeforeClusterCreateRequest{}} {
		ChangeMessage(without, func(string) string { t.Error("there is no message to change"); return "" })
	}
	if got, ok := StatusOf(&hooksv1alpha1.BeforeClusterCreateRequest{}); ok || got != Unspecified {
		t.Errorf("a request has the status %v", got)
	}
	if MessageOf(&hooksv1alpha1.BeforeClusterCreateRequest{}) != "" {
		t.Error("a request has a message")
	}
}

// The handler's own name is set in a copy: handlers that are called at the same time share the request.
func TestWithHandler(t *testing.T) {
	in := &hooksv1alpha1.BeforeClusterCreateRequest{Handler: "caller's", Settings: map[string]string{"a": "b"}}
	before := proto.Clone(in)
	out, ok := WithHandler(in, "v").(*hooksv1alpha1.BeforeClusterCreateRequest)
	if !ok || out.GetHandler() != "v" || out.GetSettings()["a"] != "b" {
		t.Errorf("got %v", out)
	}
	if !proto.Equal(before, in) {
		t.Errorf("the request became %v", in)
	}
	if out := WithHandler(&hooksv1alpha1.DiscoveryRequest{}, "v"); !proto.Equal(out, &hooksv1alpha1.DiscoveryRequest{}) {
		t.Errorf("discovery has no handler: got %v", out)
	}
}
