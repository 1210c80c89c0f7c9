// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

func TestAllow(t *testing.T) {
	gold := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	wrong := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}
	tests := map[string]struct {
		reason  string
		allowed *v1alpha1.AllowedNamespaces
		labels  map[string]string
		want    bool
		fails   bool
	}{
		"Unset":    {"as a StorageClass", nil, nil, true, false},
		"Named":    {"by its name", &v1alpha1.AllowedNamespaces{Names: []string{"b", "a"}}, nil, true, false},
		"Other":    {"another name", &v1alpha1.AllowedNamespaces{Names: []string{"b"}}, nil, false, false},
		"Empty":    {"nothing is selected by nothing", &v1alpha1.AllowedNamespaces{}, nil, false, false},
		"All":      {"an empty selector selects all", &v1alpha1.AllowedNamespaces{Selector: &metav1.LabelSelector{}}, nil, true, false},
		"Labelled": {"by its labels", &v1alpha1.AllowedNamespaces{Selector: gold}, map[string]string{"tier": "gold"}, true, false},
		"Unlike":   {"with other labels", &v1alpha1.AllowedNamespaces{Selector: gold}, map[string]string{"tier": "tin"}, false, false},
		"Either":   {"one of both is enough", &v1alpha1.AllowedNamespaces{Names: []string{"a"}, Selector: gold}, nil, true, false},
		"Invalid":  {"a selector that the schema takes may be none", &v1alpha1.AllowedNamespaces{Selector: wrong}, nil, false, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := test.allowed.Allow("a", test.labels)
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("%s: got %t, %v", test.reason, got, err)
			}
		})
	}
}
