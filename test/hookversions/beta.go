// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversions

import (
	"github.com/hookgate/hookgate/hookversion"
	v1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1"
	v1beta1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1beta1"
)

// betaSpokes returns conversions that are derived from declared differences.
func betaSpokes() map[string]hookversion.Spoke {
	return map[string]hookversion.Spoke{
		"Discovery": {
			Request: hookversion.Derive(
				&v1beta1.DiscoveryRequest{}, &v1.DiscoveryRequest{}, hookversion.Differences{},
			),
			Response: hookversion.Derive(
				&v1beta1.DiscoveryResponse{}, &v1.DiscoveryResponse{}, hookversion.Differences{},
			),
		},
		BeforeNodeDrain: {
			Request: hookversion.Derive(&v1beta1.BeforeNodeDrainRequest{}, &v1.BeforeNodeDrainRequest{}, hookversion.Differences{
				Renamed: map[string]string{"node": "nodeName", "labels": "tags", "volumes[*].size": "sizeBytes"},
				Added: map[string]any{
					"graceSeconds": int32(30), "reason": nil, "forced": nil, "volumes[*].encrypted": nil,
				},
				Gone: []string{"dryRun"},
			}),
			Response: hookversion.Derive(&v1beta1.BeforeNodeDrainResponse{}, &v1.BeforeNodeDrainResponse{}, hookversion.Differences{
				Renamed: map[string]string{"ticket": "ticketId"},
				Added:   map[string]any{"approver": nil, "priority": int32(5)},
			}),
		},
		PlanDrains: {
			Request: hookversion.Derive(&v1beta1.PlanDrainsRequest{}, &v1.PlanDrainsRequest{}, hookversion.Differences{
				Renamed: map[string]string{"nodes[*].name": "nodeName"},
				Added:   map[string]any{"maxParallel": int32(1)},
			}),
			Response: hookversion.Derive(&v1beta1.PlanDrainsResponse{}, &v1.PlanDrainsResponse{}, hookversion.Differences{
				Renamed: map[string]string{
					"steps": "waves", "steps[*].label": "title", "steps[*].nodes": "members",
					"steps[*].nodes[*].name": "nodeName",
				},
				Added: map[string]any{"waves[*].pauseSeconds": nil},
			}),
		},
	}
}
