// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversions

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	v1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1"
	v1alpha1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1alpha1"
	v1beta1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1beta1"
)

func gvh(version, name string) hook.GroupVersionHook {
	return hook.GroupVersionHook{Group: Group, Version: version, Hook: name}
}

// A difference that is not declared, or a declaration that is none, is refused when the converter is built.
func TestDeriveRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		spoke, hub  proto.Message
		differences hookversion.Differences
		want        string
	}{
		"Undeclared": {
			spoke: &v1beta1.PlanDrainsResponse{}, hub: &v1.PlanDrainsResponse{},
			differences: hookversion.Differences{
				Renamed: map[string]string{
					"steps": "waves", "steps[*].nodes": "members", "steps[*].nodes[*].name": "nodeName",
				},
			},
			want: "steps[*].label: the newer version has no label\nwaves[*].title: the older version has no such member\nwaves[*].pauseSeconds: the older version has no such member",
		},
		"Unused": {
			spoke: &v1beta1.DiscoveryResponse{}, hub: &v1.DiscoveryResponse{},
			differences: hookversion.Differences{
				Renamed: map[string]string{"a": "b"}, Added: map[string]any{"message": nil}, Gone: []string{"c"},
			},
			want: "declared, but not a difference: [a c message]",
		},
		"NoSuchName": {
			spoke: &v1beta1.PlanDrainsRequest{}, hub: &v1.PlanDrainsRequest{},
			differences: hookversion.Differences{
				Renamed: map[string]string{"nodes[*].name": "node"},
				Added:   map[string]any{"maxParallel": nil, "nodes[*].nodeName": nil},
			},
			want: "nodes[*].name: the newer version has no node",
		},
		"SameName": {
			spoke: &v1alpha1.BeforeNodeDrainResponse{}, hub: &v1.BeforeNodeDrainResponse{},
			differences: hookversion.Differences{
				Renamed: map[string]string{"ticket": "message"}, Gone: []string{"urgent"}, Added: map[string]any{
					"ticketId": nil, "approver": nil, "priority": nil,
				},
			},
			want: "ticket: message belongs to another member already",
		},
		"OtherType": {
			spoke: &v1beta1.Volume{}, hub: &v1.Volume{},
			differences: hookversion.Differences{
				Renamed: map[string]string{"size": "encrypted"}, Added: map[string]any{"sizeBytes": nil},
			},
			want: "size and encrypted have different types",
		},
	} {
		t.Run(name, func(t *testing.T) {
			spokes := Spokes()
			spokes[gvh("v1beta1", PlanDrains)] = hookversion.Spoke{
				Request: hookversion.Derive(tc.spoke, tc.hub, tc.differences),
			}
			_, err := hookversion.Build(New(), spokes)
			if err == nil || !strings.HasSuffix(strings.SplitN(err.Error(), "\nconversion of answers", 2)[0], ": "+tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

// What needs no change is not copied.
func TestConversionsShare(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		c := New()
		converter := NewConverter(c)
		from, _ := c.ByName(BeforeNodeDrain)
		to, _ := from.In(version)
		req := requestOf("v1", BeforeNodeDrain, "").(*v1.BeforeNodeDrainRequest)
		m, _, err := converter.ConvertRequest(req, from, to)
		if err != nil {
			t.Fatal(err)
		}
		down := m.(interface {
			withUnknown
			GetSettings() map[string]string
		})
		down.GetSettings()["shared"] = "yes"
		down.GetUnknownMembers()["shared"] = nil
		if len(req.GetSettings()) != 2 || len(req.GetUnknownMembers()) != 2 {
			t.Errorf("%s: maps were copied", version)
		}
		cluster := m.ProtoReflect().Get(m.ProtoReflect().Descriptor().Fields().ByName("cluster")).Message().Interface()
		if cluster != proto.Message(req.GetCluster()) {
			t.Errorf("%s: the cluster was copied", version)
		}
		if same, _, err := converter.ConvertRequest(req, from, from); err != nil || same != proto.Message(req) {
			t.Errorf("without a conversion, the message is another")
		}
	}
}

func TestConvertRefuses(t *testing.T) {
	c := New()
	converter := NewConverter(c)
	drain, _ := c.ByName(BeforeNodeDrain)
	plan, _ := c.ByName(PlanDrains)
	old, _ := drain.In("v1beta1")
	if _, _, err := converter.ConvertRequest(&v1.BeforeNodeDrainRequest{}, drain, plan); err == nil ||
		!strings.HasSuffix(err.Error(), "these are different hooks") {
		t.Errorf("to another hook: %v", err)
	}
	want := "convert request from " + Group + "/v1 to " + Group + "/v1beta1: hookversions.v1.PlanDrainsRequest is not a hookversions.v1.BeforeNodeDrainRequest"
	if _, _, err := converter.ConvertRequest(&v1.PlanDrainsRequest{}, drain, old); err == nil || err.Error() != want {
		t.Errorf("of another message: %v", err)
	}
}
