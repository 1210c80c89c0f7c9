// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversions

import (
	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	v1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1"
	v1alpha1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1alpha1"
	v1beta1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1beta1"
)

// What follows says the same in each version, written by hand: a request of one version has to reach a handler of
// another as that version's, and an answer likewise.

var cluster = &hooksv1alpha1.RawExtension{
	Raw: []byte(`{"kind":"Cluster",  "metadata":{"name":"c","namespace":"n"},"spec":{"n":9007199254740993}}`),
}

func hint(text string) map[string]*hooksv1alpha1.JSON {
	return map[string]*hooksv1alpha1.JSON{"hint": {Raw: []byte(text)}}
}

// requestOf returns the request of a hook in a version, for that handler.
func requestOf(version, hook, handler string) proto.Message {
	settings := map[string]string{"a": "b"}
	switch hook + "/" + version {
	case BeforeNodeDrain + "/v1alpha1":
		return &v1alpha1.BeforeNodeDrainRequest{
			Handler: handler, Settings: settings, Cluster: cluster, Node: "worker-1", Endpoint: "10.0.0.7:8443",
			Volumes:        []*v1alpha1.Volume{{Name: "data", UnknownMembers: hint("1")}, {Name: "logs"}},
			UnknownMembers: hint(`{"n": 9007199254740993}`),
		}
	case BeforeNodeDrain + "/v1beta1":
		return &v1beta1.BeforeNodeDrainRequest{
			Handler: handler, Settings: settings, Cluster: cluster, Node: "worker-1", Host: "10.0.0.7", Port: 8443,
			Volumes: []*v1beta1.Volume{{Name: "data", UnknownMembers: hint("1")}, {Name: "logs"}}, UnknownMembers: hint(
				`{"n": 9007199254740993}`,
			),
		}
	case BeforeNodeDrain + "/v1":
		return &v1.BeforeNodeDrainRequest{
			Handler: handler, Settings: settings, Cluster: cluster, NodeName: "worker-1", Host: "10.0.0.7", Port: 8443,
			GraceSeconds: 30,
			Volumes:      []*v1.Volume{{Name: "data", UnknownMembers: hint("1")}, {Name: "logs"}}, UnknownMembers: hint(
				`{"n": 9007199254740993}`,
			),
		}
	case PlanDrains + "/v1beta1":
		return &v1beta1.PlanDrainsRequest{
			Handler: handler, Settings: settings, Cluster: cluster,
			Nodes:          []*v1beta1.Node{{Name: "worker-1", UnknownMembers: hint("2")}, {Name: "worker-2"}},
			UnknownMembers: hint("[3]"),
		}
	case PlanDrains + "/v1":
		return &v1.PlanDrainsRequest{
			Handler: handler, Settings: settings, Cluster: cluster, MaxParallel: proto.Int32(1),
			Nodes:          []*v1.Member{{NodeName: "worker-1", UnknownMembers: hint("2")}, {NodeName: "worker-2"}},
			UnknownMembers: hint("[3]"),
		}
	}
	return nil
}

// responseOf returns the answer of a hook in a version.
func responseOf(version, hook string) proto.Message {
	const success, stableSuccess = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS,
		v1.ResponseStatus_RESPONSE_STATUS_SUCCESS
	switch hook + "/" + version {
	case BeforeNodeDrain + "/v1alpha1":
		return &v1alpha1.BeforeNodeDrainResponse{
			Status: success, Message: "hold", RetryAfterSeconds: 7, Ticket: "t-1", Urgent: new(true),
			UnknownMembers: hint("4"),
		}
	case BeforeNodeDrain + "/v1beta1":
		return &v1beta1.BeforeNodeDrainResponse{
			Status: success, Message: "hold", RetryAfterSeconds: 7, Ticket: "t-1", UnknownMembers: hint("4"),
		}
	case BeforeNodeDrain + "/v1":
		return &v1.BeforeNodeDrainResponse{
			Status: stableSuccess, Message: "hold", RetryAfterSeconds: 7, TicketId: "t-1", Priority: 10,
			UnknownMembers: hint("4"),
		}
	case PlanDrains + "/v1beta1":
		return &v1beta1.PlanDrainsResponse{
			Status: success, Message: "planned", UnknownMembers: hint("5"),
			Steps: []*v1beta1.Step{
				{Nodes: []*v1beta1.Node{{Name: "worker-2"}}, UnknownMembers: hint("6")},
				{Nodes: []*v1beta1.Node{{Name: "worker-1"}}},
			},
		}
	case PlanDrains + "/v1":
		return &v1.PlanDrainsResponse{
			Status: stableSuccess, Message: "planned", UnknownMembers: hint("5"),
			Waves: []*v1.Wave{
				{Members: []*v1.Member{{NodeName: "worker-2"}}, UnknownMembers: hint("6")},
				{Members: []*v1.Member{{NodeName: "worker-1"}}},
			},
		}
	}
	return nil
}

// answerFrom returns the answer that a caller of a version gets when a handler of another one gave responseOf: the same
// but for what the handler's version does not have, which is then as it has always been.
func answerFrom(handler, caller, hook string) proto.Message {
	m := responseOf(caller, hook)
	if hook == BeforeNodeDrain && handler == "v1beta1" {
		switch answer := m.(type) { // v1beta1 has no priority
		case *v1.BeforeNodeDrainResponse:
			answer.Priority = 5
		case *v1alpha1.BeforeNodeDrainResponse:
			answer.Urgent = nil
		}
	}
	return m
}
