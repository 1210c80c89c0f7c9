// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/registry"
)

// newChains returns the follower of HandlerChains. It calls needClusters if steps may be chosen by the labels of
// Clusters.
func newChains(
	set *discovery.ChainSet, hooks *catalog.Catalog, needClusters func(), shared *own,
) *follower[*v1alpha1.HandlerChain, registry.Chain] {
	type object = *v1alpha1.HandlerChain
	return newFollower(shared, kind[object, registry.Chain]{
		name: chainKind, object: &v1alpha1.HandlerChain{}, list: &v1alpha1.HandlerChainList{},
		compile: func(o object) (registry.Chain, field.ErrorList) { return extensionconfig.ConvertChain(o, hooks) },
		apply: func(valid []registry.Chain, invalid map[string]mistaken[object]) []string {
			for _, m := range invalid {
				if m.closed != nil && m.closed.Chain != nil {
					valid = append(valid, *m.closed.Chain)
				}
			}
			set.Set(valid, messagesOf(invalid))
			if slices.ContainsFunc(valid, func(c registry.Chain) bool { return c.Strict }) {
				needClusters()
			}
			return nil // no handler is called differently
		},
		verdicts: set.Verdicts, report: set.Report,
		condition:  extensionconfig.Verdict.ReadyCondition,
		conditions: func(o object) *[]metav1.Condition { return &o.Status.Conditions },
	})
}
