// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Allow reports whether a namespace with those labels may use the class. A nil a allows every namespace. An error means
// that the selector is invalid; no namespace is then allowed by it.
func (a *AllowedNamespaces) Allow(name string, set map[string]string) (bool, error) {
	if a == nil || slices.Contains(a.Names, name) {
		return true, nil
	}
	if a.Selector == nil {
		return false, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(a.Selector)
	if err != nil {
		return false, fmt.Errorf("spec.allowedNamespaces.selector: %w", err)
	}
	return selector.Matches(labels.Set(set)), nil
}
