// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
)

// admissionAttempts is how often a replica decides about a Cluster while others decide at the same time.
const admissionAttempts = 20

// ruleAdmissions decides which Clusters a rule admits, one after the other: it reads them past all caches, and notes in
// the status of the rule who may pass, under the lock of its resource version. An order of the Clusters by the time of
// their creation would need no note, and not be exact: the API server sets that time, in seconds, before others can see
// the Cluster, so that one with an earlier time may come later.
//
// A note is needed from the answer until the Cluster itself shows that it is past the hook, which takes seconds. If
// notes are lost, as by a restore, Clusters that are not past the hook ask again.
type ruleAdmissions struct {
	*ruleParams
	readOnly bool
	turn     chan struct{} // so that calls of one replica are in no conflict with each other

	// Set before the registry is filled.
	live   client.Reader
	client client.Client
}

var _ hookrule.Params = (*ruleAdmissions)(nil)

func newRuleAdmissions(params *ruleParams, readOnly bool) *ruleAdmissions {
	return &ruleAdmissions{ruleParams: params, readOnly: readOnly, turn: make(chan struct{}, 1)}
}

// Admit implements hookrule.Params.
func (a *ruleAdmissions) Admit(
	ctx context.Context, rule string, of hookrule.Reference, cluster types.NamespacedName,
	decide func(clusters [][]byte) (passes bool, err error),
) error {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return admissionFails(rule, ctx.Err())
	}
	for range admissionAttempts {
		list := &v1alpha1.HookRuleList{} // a list, because the gateway has no right to get rules
		if err := a.live.List(ctx, list, client.MatchingFields{"metadata.name": rule}); err != nil {
			return admissionFails(rule, err)
		}
		if len(list.Items) != 1 {
			return admissionFails(rule, errors.New("there is no such HookRule any more"))
		}
		now := &list.Items[0]
		next, err := a.decide(ctx, now.Status.Admitted, of, cluster, decide) // after the rule was read
		if err != nil {
			return err
		}
		if slices.Equal(next, now.Status.Admitted) {
			return nil
		}
		if a.readOnly {
			return hook.Errorf(hook.NotReady, "HookRule %q admits Clusters, and this gateway writes nothing (--read-only)", rule)
		}
		before := now.DeepCopy()
		now.Status.Admitted = next
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := a.client.Status().Patch(ctx, now, patch); err == nil {
			return nil
		} else if !apierrors.IsConflict(err) {
			return admissionFails(rule, err)
		}
	}
	return admissionFails(rule, errors.New("others write them all the time"))
}

// admissionFails returns the error of a call, which is err if that says itself what is wrong.
func admissionFails(rule string, err error) error {
	if _, says := errors.AsType[*hook.Error](err); says {
		return err
	}
	return hook.Errorf(hook.NotReady, "the Clusters that HookRule %q has admitted cannot be read or written: try again",
		rule).WithCause(err)
}

// decide decides by the Clusters as they are now, and returns the notes after that.
func (a *ruleAdmissions) decide(
	ctx context.Context, notes []v1alpha1.HookRuleAdmission, of hookrule.Reference, cluster types.NamespacedName,
	decide func(clusters [][]byte) (passes bool, err error),
) (next []v1alpha1.HookRuleAdmission, err error) {
	all, err := a.inNamespace(ctx, of, cluster.Namespace)
	if err != nil {
		return nil, err
	}
	var admitted [][]byte
	var own *v1alpha1.HookRuleAdmission
	for _, o := range all {
		is := v1alpha1.HookRuleAdmission{Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID())}
		unstructured.RemoveNestedField(o.Object, "status")
		_, text, err := compact(o)
		if err != nil {
			return nil, err
		}
		past, noted := hookrule.IsPast(text), slices.Contains(notes, is)
		switch {
		case is.Name == cluster.Name:
			own = &is
		case !past && !noted:
			continue
		case noted && !past:
			next = append(next, is)
		}
		admitted = append(admitted, text)
		if is.Name == cluster.Name && past {
			own.UID = "" // which needs no note
		}
	}
	if own == nil {
		return nil, hook.Errorf(hook.NotReady, "%s %q is not known", of.Kind.Kind, cluster)
	}
	passes, err := decide(admitted)
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(slices.Clone(notes), func(n v1alpha1.HookRuleAdmission) bool {
		return n.Namespace == cluster.Namespace
	})
	if passes && own.UID != "" && !slices.Contains(notes, *own) { // a write in any case, which leaves out what is over
		others = slices.DeleteFunc(others, func(n v1alpha1.HookRuleAdmission) bool { return a.isOver(ctx, of, n) })
	}
	if passes && own.UID != "" {
		next = append(next, *own)
	}
	if next = append(next, others...); len(next) > limits.RulePlaces {
		return nil, hook.Errorf(hook.NotReady, "the rule has no room for more than %d Clusters that begin", limits.RulePlaces)
	}
	slices.SortFunc(next, func(x, y v1alpha1.HookRuleAdmission) int {
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	return next, nil
}

// inNamespace asks the API server for the Clusters of a namespace, by name.
func (a *ruleAdmissions) inNamespace(
	ctx context.Context, of hookrule.Reference, namespace string,
) ([]*unstructured.Unstructured, error) {
	mapping, problem := a.resourceOf(of)
	if mapping == nil {
		return nil, hook.Errorf(hook.NotReady, "%s", problem)
	}
	list, err := a.ruleParams.client.Resource(mapping.Resource).Namespace(namespace).
		List(ctx, metav1.ListOptions{Limit: limits.RuleParamObjects + 1})
	if err != nil {
		return nil, hook.Errorf(hook.NotReady, "the Clusters of namespace %q cannot be read: try again", namespace).
			WithCause(err)
	}
	if len(list.Items) > limits.RuleParamObjects {
		return nil, hook.Errorf(hook.Policy, "%s in namespace %q: more than %d objects", of, namespace,
			limits.RuleParamObjects)
	}
	all := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all, nil
}

// isOver reports whether a note about a Cluster of another namespace is no longer needed. What the cache shows is
// confirmed by the API server: the Cluster may be newer than the cache.
func (a *ruleAdmissions) isOver(ctx context.Context, of hookrule.Reference, n v1alpha1.HookRuleAdmission) bool {
	name := types.NamespacedName{Namespace: n.Namespace, Name: n.Name}
	if now, known := a.lookUp(of, name); !known || now != nil && !hookrule.IsPast(now) {
		return false
	}
	o, err := a.get(ctx, of, name)
	if err != nil || o == nil || string(o.GetUID()) != n.UID {
		return err == nil
	}
	_, now, err := compact(o)
	return err == nil && hookrule.IsPast(now)
}
