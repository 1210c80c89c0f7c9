// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// releasePage is how many objects are read at once.
	releasePage = 500
	// releaseRounds bounds how often Release looks again for annotations, and releasePause is the time between two looks.
	releaseRounds = 10
	releasePause  = time.Second
)

// Released counts what Release has changed.
type Released struct {
	Machines int // whose annotations were removed
	Clusters int // that have ReleasedAnnotation now, and had not
}

// Release takes the annotations and the condition of the controllers off all Machines of a namespace, or of all if
// that is empty. With holdOff, it first puts ReleasedAnnotation on their Clusters, so that controllers that run put
// none back: it goes along when clusterctl moves a Cluster, which it refuses to do with a paused one. Without holdOff,
// none may run.
func Release(ctx context.Context, c client.Client, namespace string, holdOff bool) (released Released, err error) {
	if holdOff {
		if released.Clusters, err = mark(ctx, c, namespace, hookgate); err != nil {
			return released, err
		}
	}
	for range releaseRounds {
		n, err := releaseMachines(ctx, c, namespace)
		if released.Machines += n; err != nil || n == 0 {
			return released, err
		}
		// A controller may have been about to annotate a Machine.
		select {
		case <-ctx.Done():
			return released, ctx.Err()
		case <-time.After(releasePause):
		}
	}
	return released, errors.New("release Machines: the annotations keep coming back: a gateway with --machines is " +
		"running")
}

// Resume takes ReleasedAnnotation off the Clusters of a namespace, or of all if that is empty, and returns how many had
// it.
func Resume(ctx context.Context, c client.Client, namespace string) (int, error) {
	return mark(ctx, c, namespace, nil)
}

// mark sets ReleasedAnnotation of Clusters, or removes it if value is nil, and returns how many it has changed.
func mark(ctx context.Context, c client.Client, namespace string, value any) (changed int, err error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("ClusterList"))
	err = pages(ctx, c, list, namespace, func() error {
		for i := range list.Items {
			o := &list.Items[i]
			if _, has := o.Annotations[ReleasedAnnotation]; has == (value != nil) {
				continue
			}
			o.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
			err := annotate(ctx, c, o, map[string]any{ReleasedAnnotation: value}, false)
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("annotate Cluster %s/%s: %w", o.Namespace, o.Name, err)
			}
			changed++
		}
		return nil
	})
	return changed, err
}

// releaseMachines returns the number of Machines that had an annotation.
func releaseMachines(ctx context.Context, c client.Client, namespace string) (changed int, err error) {
	list := &clusterv1.MachineList{}
	err = pages(ctx, c, list, namespace, func() error {
		for i := range list.Items {
			m := &list.Items[i]
			if _, has := m.Annotations[DrainAnnotation]; !has {
				if _, has = m.Annotations[TerminateAnnotation]; !has {
					continue
				}
			}
			err := annotate(ctx, c, m, map[string]any{DrainAnnotation: nil, TerminateAnnotation: nil}, false)
			if err == nil && meta.FindStatusCondition(m.Status.Conditions, HeldCondition) != nil {
				err = applyConditions(ctx, c, m, fieldOwner, []metav1.Condition{})
			}
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("release Machine %s/%s: %w", m.Namespace, m.Name, err)
			}
			changed++
		}
		return nil
	})
	return changed, err
}

// pages reads a list in pages, and has each looked at.
func pages(ctx context.Context, c client.Client, list client.ObjectList, namespace string, look func() error) error {
	for {
		err := c.List(ctx, list, client.InNamespace(namespace), client.Limit(releasePage),
			client.Continue(list.GetContinue()))
		if err != nil {
			kind, _ := apiutil.GVKForObject(list, c.Scheme()) // the client knows it
			return fmt.Errorf("list %ss: %w", strings.TrimSuffix(kind.Kind, "List"), err)
		}
		if err := look(); err != nil || list.GetContinue() == "" {
			return err
		}
	}
}

// Holder returns the Lease by which controllers of Machine hooks work in the namespace of a gateway, and who holds it.
// Both are empty if none works.
func Holder(ctx context.Context, c client.Reader, namespace string, now time.Time) (lease, holder string, err error) {
	list := &coordinationv1.LeaseList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return "", "", fmt.Errorf("list the Leases of namespace %s: %w", namespace, err)
	}
	for i := range list.Items {
		l := &list.Items[i]
		holder := ptr.Deref(l.Spec.HolderIdentity, "")
		if !strings.HasPrefix(l.Name, leasePrefix) || holder == "" || l.Spec.RenewTime == nil {
			continue
		}
		lasts := time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0)) * time.Second
		if l.Spec.RenewTime.Add(lasts).After(now) {
			return l.Name, holder, nil
		}
	}
	return "", "", nil
}
