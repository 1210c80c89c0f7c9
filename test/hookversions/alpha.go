// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversions

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hookversion"
	v1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1"
	v1alpha1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1alpha1"
)

const (
	graceSeconds   = 30 // what v1alpha1 always waited
	priority       = 5  // what was not urgent
	urgentPriority = 10
)

// alphaSpokes returns conversions that are written by hand.
func alphaSpokes() map[string]hookversion.Spoke {
	return map[string]hookversion.Spoke{
		"Discovery": {
			Request: hookversion.Conversion{
				Up: typed(alphaDiscoveryRequestUp), Down: typed(alphaDiscoveryRequestDown),
			},
			Response: hookversion.Conversion{
				Up: typed(alphaDiscoveryResponseUp), Down: typed(alphaDiscoveryResponseDown),
			},
		},
		BeforeNodeDrain: {
			Request: hookversion.Conversion{
				Up: typed(alphaDrainRequestUp), Down: typed(alphaDrainRequestDown),
				LostDown: []string{
					"forced", "graceSeconds", "reason", "tags", "volumes[*].encrypted", "volumes[*].sizeBytes",
				},
			},
			Response: hookversion.Conversion{
				Up: typed(alphaDrainResponseUp), Down: typed(alphaDrainResponseDown),
				LostUp: []string{"urgent"}, LostDown: []string{"approver", "priority"},
			},
		},
	}
}

// typed returns a Convert that calls a function of the messages' own types.
func typed[From, To proto.Message](f func(in From, lost *losses) (To, error)) hookversion.Convert {
	return func(m proto.Message) (proto.Message, []string, error) {
		in, ok := m.(From)
		if !ok {
			return nil, nil, fmt.Errorf("%T is not a %T", m, in)
		}
		var lost losses
		out, err := f(in, &lost)
		if err != nil {
			return nil, nil, err
		}
		lost = append(lost, hookversion.CopyUnknown(out, m, "")...)
		return out, lost, nil
	}
}

// losses collects paths.
type losses []string

// add records that the member at path is lost, if it was set.
func (l *losses) add(path string, set bool) {
	if set {
		*l = append(*l, path)
	}
}

// nested copies the unknown members of the message at path.
func nested[T proto.Message](to T, from proto.Message, path string, lost *losses) T {
	*lost = append(*lost, hookversion.CopyUnknown(to, from, path)...)
	return to
}

func alphaDiscoveryRequestUp(*v1alpha1.DiscoveryRequest, *losses) (*v1.DiscoveryRequest, error) {
	return &v1.DiscoveryRequest{}, nil
}

func alphaDiscoveryRequestDown(*v1.DiscoveryRequest, *losses) (*v1alpha1.DiscoveryRequest, error) {
	return &v1alpha1.DiscoveryRequest{}, nil
}

func alphaDiscoveryResponseUp(in *v1alpha1.DiscoveryResponse, _ *losses) (*v1.DiscoveryResponse, error) {
	return &v1.DiscoveryResponse{
		Status: v1.ResponseStatus(in.GetStatus()), Message: in.GetMessage(), Handlers: in.GetHandlers(),
	}, nil
}

func alphaDiscoveryResponseDown(in *v1.DiscoveryResponse, _ *losses) (*v1alpha1.DiscoveryResponse, error) {
	return &v1alpha1.DiscoveryResponse{
		Status: hooksv1alpha1.ResponseStatus(in.GetStatus()), Message: in.GetMessage(), Handlers: in.GetHandlers(),
	}, nil
}

func alphaDrainRequestUp(in *v1alpha1.BeforeNodeDrainRequest, lost *losses) (*v1.BeforeNodeDrainRequest, error) {
	out := &v1.BeforeNodeDrainRequest{
		Handler: in.GetHandler(), Settings: in.GetSettings(), Cluster: in.GetCluster(), NodeName: in.GetNode(),
		GraceSeconds: graceSeconds,
	}
	if in.GetEndpoint() != "" {
		at := strings.LastIndexByte(in.GetEndpoint(), ':')
		port, err := strconv.ParseInt(in.GetEndpoint()[at+1:], 10, 32)
		if at < 0 || err != nil {
			return nil, fmt.Errorf("endpoint: want host:port, got %q", in.GetEndpoint())
		}
		out.Host, out.Port = in.GetEndpoint()[:at], int32(port)
	}
	for _, v := range in.GetVolumes() {
		out.Volumes = append(out.Volumes, nested(&v1.Volume{Name: v.GetName()}, v, "volumes[*]", lost))
	}
	return out, nil
}

func alphaDrainRequestDown(in *v1.BeforeNodeDrainRequest, lost *losses) (*v1alpha1.BeforeNodeDrainRequest, error) {
	lost.add("graceSeconds", in.GetGraceSeconds() != 0 && in.GetGraceSeconds() != graceSeconds)
	lost.add("reason", in.GetReason() != "")
	lost.add("tags", len(in.GetTags()) > 0)
	lost.add("forced", in.GetForced())
	out := &v1alpha1.BeforeNodeDrainRequest{
		Handler: in.GetHandler(), Settings: in.GetSettings(), Cluster: in.GetCluster(), Node: in.GetNodeName(),
	}
	if in.GetHost() != "" || in.GetPort() != 0 {
		out.Endpoint = in.GetHost() + ":" + strconv.Itoa(int(in.GetPort()))
	}
	for _, v := range in.GetVolumes() {
		lost.add("volumes[*].sizeBytes", v.GetSizeBytes() != 0)
		lost.add("volumes[*].encrypted", v.Encrypted != nil)
		out.Volumes = append(out.Volumes, nested(&v1alpha1.Volume{Name: v.GetName()}, v, "volumes[*]", lost))
	}
	return out, nil
}

func alphaDrainResponseUp(in *v1alpha1.BeforeNodeDrainResponse, lost *losses) (*v1.BeforeNodeDrainResponse, error) {
	lost.add("urgent", in.Urgent != nil && !in.GetUrgent()) // that it was said
	out := &v1.BeforeNodeDrainResponse{
		Status: v1.ResponseStatus(in.GetStatus()), Message: in.GetMessage(),
		RetryAfterSeconds: in.GetRetryAfterSeconds(),
		TicketId:          in.GetTicket(), Priority: priority,
	}
	if in.GetUrgent() {
		out.Priority = urgentPriority
	}
	return out, nil
}

func alphaDrainResponseDown(in *v1.BeforeNodeDrainResponse, lost *losses) (*v1alpha1.BeforeNodeDrainResponse, error) {
	lost.add("approver", in.GetApprover() != "")
	out := &v1alpha1.BeforeNodeDrainResponse{
		Status: hooksv1alpha1.ResponseStatus(in.GetStatus()), Message: in.GetMessage(),
		RetryAfterSeconds: in.GetRetryAfterSeconds(), Ticket: in.GetTicketId(),
	}
	switch in.GetPriority() {
	case 0, priority:
	case urgentPriority:
		out.Urgent = new(true)
	default:
		lost.add("priority", true)
	}
	return out, nil
}
