// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// awaitMessage waits until the condition Discovered has status and exactly message, for the current generation.
func awaitMessage(t testing.TB, c client.Client, name string, status metav1.ConditionStatus,
	message string) *runtimev1.ExtensionConfig {
	t.Helper()
	var config *runtimev1.ExtensionConfig
	eventually(t, name+": Discovered is "+string(status)+": "+message, func() (string, bool) {
		config = get(t, c, name)
		found := meta.FindStatusCondition(config.Status.Conditions, discoveredCondition)
		if found == nil {
			return "no such condition", false
		}
		return string(found.Status) + ": " + found.Message,
			found.Status == status && found.Message == message && found.ObservedGeneration == config.Generation
	})
	return config
}

// TestNamespaceSelectorsThatDoNotParse: the schema of a label selector admits values that do not parse as a selector.
func TestNamespaceSelectorsThatDoNotParse(t *testing.T) {
	r := start(t, nil)
	x := newExtension(t, "a")
	for name, tc := range map[string]struct {
		reason      string
		requirement metav1.LabelSelectorRequirement
		want        string
	}{
		"in": {
			reason:      "In without values could mean nothing or everything",
			requirement: metav1.LabelSelectorRequirement{Key: "team", Operator: metav1.LabelSelectorOpIn},
			want:        "spec.namespaceSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
		},
		"exists": {
			reason: "the values would not be looked at",
			requirement: metav1.LabelSelectorRequirement{Key: "team", Operator: metav1.LabelSelectorOpExists,
				Values: []string{"blue"}},
			want: "spec.namespaceSelector.matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := newConfig(t, "no-selector-"+name, x)
			config.Labels[clusterv1.WatchLabel] = "testnamespaceselectorsthatdonotparse"
			config.Spec.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{tc.requirement}}
			create(t, r.client, config)
			awaitMessage(t, r.client, config.Name, metav1.ConditionFalse, tc.want)
			if served := r.served(); len(served) > 0 {
				t.Errorf("%s: but %s is served", tc.reason, served)
			}
			update(t, r.client, config.Name, func(c *runtimev1.ExtensionConfig) {
				c.Spec.NamespaceSelector.MatchExpressions[0] = metav1.LabelSelectorRequirement{Key: "team",
					Operator: metav1.LabelSelectorOpIn, Values: []string{"blue"}}
			})
			awaitMessage(t, r.client, config.Name, metav1.ConditionTrue, "")
			if err := r.client.Delete(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			r.serves(t)
		})
	}
}
