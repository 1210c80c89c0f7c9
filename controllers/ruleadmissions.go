// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/internal/kinds/owner"
)

// admittedPrefix is the beginning of the names of the records of admitted Clusters, and of their locks: of a rule that
// has places, too, a call takes one while it decides whom to admit.
const admittedPrefix = "admitted."

// ruleReads is what rules read, with the Clusters that they admit.
type ruleReads struct {
	*ruleParams
	*rulePlaces
}

var _ hookrule.Params = ruleReads{}

// Admit implements hookrule.Params. Clusters are read past all caches, and get a record before they pass, as for a
// place. An order of the Clusters by the time of their creation would need no record, and not be exact: the API server
// sets that time, in seconds, before others can see the Cluster, so that one with an earlier time may come later.
//
// A record is needed from the answer until the Cluster itself shows that it is past the hook, which takes seconds.
func (p *rulePlaces) Admit(
	ctx context.Context, rule string, of hookrule.Reference, cluster types.NamespacedName,
	decide func(clusters [][]byte) (passes bool, err error),
) error {
	var undecided error
	err := p.write(ctx, rule, admittedPrefix+rule, func() (done bool, err error) {
		var a admission
		if a, err = p.readAdmission(ctx, rule, of, cluster); err != nil {
			return false, err
		}
		if a.record != nil && !isOf(a.record, a.cluster) { // of a Cluster that is gone
			return false, p.remove(ctx, a.record)
		}
		var passes bool
		if passes, undecided = decide(a.admitted); undecided != nil {
			return true, nil //nolint:nilerr // nothing is written; the caller gets it
		}
		return p.admit(ctx, rule, &a, passes)
	})
	if err != nil {
		return err
	}
	return undecided
}

// admission is what the API server has when a rule decides about a Cluster.
type admission struct {
	cluster  *unstructured.Unstructured
	isPast   bool
	record   *v1alpha1.ClusterRecord // of the Cluster; nil if it has none
	admitted [][]byte                // the Clusters that count, with the Cluster itself
}

// readAdmission reads the records before the Clusters: one that has none any more shows itself that it is past.
func (p *rulePlaces) readAdmission(
	ctx context.Context, rule string, of hookrule.Reference, cluster types.NamespacedName,
) (a admission, err error) {
	records, err := ruleRecords(ctx, p.live, rule, client.InNamespace(cluster.Namespace))
	if err != nil {
		return a, err
	}
	byName := map[string]*v1alpha1.ClusterRecord{}
	for i := range records {
		if !isPlace(&records[i]) {
			byName[records[i].Spec.ClusterName] = &records[i]
		}
	}
	a.record = byName[cluster.Name]
	all, err := p.params.inNamespace(ctx, of, cluster.Namespace)
	if err != nil {
		return a, err
	}
	for i := range all {
		o := &all[i]
		unstructured.RemoveNestedField(o.Object, "status")
		_, text, err := compact(o)
		if err != nil {
			return a, err
		}
		r, isPast := byName[o.GetName()], hookrule.IsPast(text)
		switch {
		case o.GetName() == cluster.Name:
			a.cluster, a.isPast = o, isPast
		case isPast:
		case r == nil || !isOf(r, o) || !counts(r, a.record):
			continue
		}
		a.admitted = append(a.admitted, text)
	}
	if a.cluster == nil {
		return a, hook.Errorf(hook.NotReady, "%s %q is not known", of.Kind.Kind, cluster)
	}
	return a, nil
}

// counts reports whether a Cluster counts by its record for another one, whose own record is nil if it has none: it was
// admitted, or both are about to be, and it was first.
func counts(r, own *v1alpha1.ClusterRecord) bool {
	return isGiven(r) || own != nil && !isGiven(own) && isBefore(r, own)
}

// isOf reports whether a record is of a Cluster, and not of one that had its name before.
func isOf(r *v1alpha1.ClusterRecord, cluster *unstructured.Unstructured) bool {
	uid := owner.ClusterUID(r)
	return uid == "" || uid == cluster.GetUID()
}

// admit takes the next step after a decision, and reports whether it is the last one.
func (p *rulePlaces) admit(ctx context.Context, rule string, a *admission, passes bool) (done bool, err error) {
	switch needed := passes && !a.isPast; {
	case a.record == nil && !needed:
		return true, nil
	case a.record == nil:
		return false, p.announce(ctx, admittedPrefix+rule, a.cluster, v1alpha1.ClusterRecordSpec{
			Admission: &v1alpha1.ClusterAdmission{Rule: rule},
		})
	case !needed && p.readOnly: // another gateway removes it
		return true, nil
	case !needed:
		return true, p.remove(ctx, a.record)
	case isGiven(a.record):
		return true, nil
	}
	next := a.record.DeepCopy()
	next.Spec.Admission.Since = metav1.Now()
	return true, p.update(ctx, next)
}

// inNamespace asks the API server for the Clusters of a namespace, by name.
func (p *ruleParams) inNamespace(
	ctx context.Context, of hookrule.Reference, namespace string,
) ([]unstructured.Unstructured, error) {
	mapping, problem := p.resourceOf(of)
	if mapping == nil {
		return nil, hook.Errorf(hook.NotReady, "%s", problem)
	}
	list, err := p.client.Resource(mapping.Resource).Namespace(namespace).
		List(ctx, metav1.ListOptions{Limit: limits.RuleParamObjects + 1})
	if err != nil {
		return nil, hook.Errorf(hook.NotReady, "the Clusters of namespace %q cannot be read: try again", namespace).
			WithCause(err)
	}
	if len(list.Items) > limits.RuleParamObjects {
		return nil, hook.Errorf(hook.Policy, "%s in namespace %q: more than %d objects", of, namespace,
			limits.RuleParamObjects)
	}
	return list.Items, nil
}
