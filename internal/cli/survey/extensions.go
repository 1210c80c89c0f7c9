// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// State is what the status of an ExtensionConfig says. Conditions are nil if it has none of them.
type State struct {
	Name     string
	Handlers int
	// Discovered says whether the extension has answered with its handlers.
	Discovered *metav1.Condition
	// Available says whether the extension is called: it is not while its circuit is open.
	Available *metav1.Condition
}

// States returns the states of the ExtensionConfigs, by name.
func (c *Cluster) States(ctx context.Context) ([]State, error) {
	var options []client.ListOption
	if c.watchFilter != "" {
		options = append(options, client.MatchingLabels{clusterv1.WatchLabel: c.watchFilter})
	}
	configs, err := c.configs(ctx, options...)
	if err != nil {
		return nil, err
	}
	var states []State
	for _, group := range c.groups {
		for i := range configs[group] {
			config := &configs[group][i]
			conditions := config.Status.Conditions
			states = append(states, State{
				Name: config.Name, Handlers: len(config.Status.Handlers),
				Discovered: meta.FindStatusCondition(conditions, runtimev1.ExtensionConfigDiscoveredCondition),
				Available:  meta.FindStatusCondition(conditions, clusterv1.AvailableCondition),
			})
		}
	}
	slices.SortFunc(states, func(a, b State) int { return strings.Compare(a.Name, b.Name) })
	return states, nil
}
