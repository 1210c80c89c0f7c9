// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hooktest

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
)

// Params are the objects of a case that the params of its rule read, in place of those of a cluster.
type Params []*unstructured.Unstructured

// Objects returns the objects that a case gives, by namespace and name. The rule must be able to read each of them.
func (g *Given) Objects(reads []hookrule.Reference) (Params, error) {
	var objects Params
	for i, raw := range g.Params {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(raw); err != nil || o.GetName() == "" {
			return nil, fmt.Errorf("given.params[%d]: want an object with apiVersion, kind and metadata.name", i)
		}
		if !slices.ContainsFunc(reads, func(r hookrule.Reference) bool { return r.Kind == o.GroupVersionKind() }) {
			return nil, fmt.Errorf("given.params[%d]: no param of the rule reads a %s of %s", i, o.GetKind(), o.GetAPIVersion())
		}
		objects = append(objects, o)
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return objects, nil
}

// Read returns what hookrule.Params returns.
func (p Params) Read(of hookrule.Reference, self types.NamespacedName) ([][]byte, error) {
	selector, err := labels.Parse(of.Selector)
	if err != nil {
		return nil, err
	}
	var found [][]byte
	for _, o := range p {
		namespace, name := of.Namespace, of.Name
		if of.Self {
			namespace, name = self.Namespace, self.Name
		}
		if o.GroupVersionKind() != of.Kind || namespace != "" && namespace != o.GetNamespace() ||
			name != "" && name != o.GetName() || !selector.Matches(labels.Set(o.GetLabels())) {
			continue
		}
		raw, err := o.MarshalJSON()
		if err != nil {
			return nil, err
		}
		found = append(found, raw)
	}
	if of.Self && len(found) == 0 {
		return nil, hook.Errorf(hook.NotReady, "%s %q is not known", of.Kind.Kind, self.String())
	}
	return found, nil
}

// Admit calls decide with what hookrule.Params has: the Clusters of p, by name, that are past the hook, and that of the
// request, whose JSON is own.
func (p Params) Admit(
	of hookrule.Reference, cluster types.NamespacedName, own []byte,
	decide func(clusters [][]byte) (passes bool, err error),
) error {
	of.Self, of.Namespace = false, cluster.Namespace
	others := slices.DeleteFunc(slices.Clone(p), func(o *unstructured.Unstructured) bool {
		return o.GetName() == cluster.Name
	})
	all, err := others.Read(of, cluster)
	if err != nil {
		return err
	}
	_, err = decide(append(slices.DeleteFunc(all, func(c []byte) bool { return !hookrule.IsPast(c) }), own))
	return err
}
