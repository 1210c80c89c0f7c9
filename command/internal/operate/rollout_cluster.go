// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
)

// clusterRollouts are those of a cluster.
type clusterRollouts struct{ client.Client }

var _ rolloutObjects = clusterRollouts{}

func (c clusterRollouts) get(ctx context.Context, name string) (*v1alpha1.ExtensionRollout, error) {
	of := &v1alpha1.ExtensionRollout{}
	err := within(ctx, func(ctx context.Context) error { return c.Get(ctx, client.ObjectKey{Name: name}, of) })
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no %s %q: see kubectl get extensionrollouts; to make one from "+
			"an ExtensionConfig in use, run hookgate rollout adopt", rollout.Kind, name)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %q: %w", rollout.Kind, name, target.NotServed(rollout.Kind, err))
	}
	return of, nil
}

// preview shows nothing: the command has said what changes.
func (clusterRollouts) preview(
	io.Writer, *v1alpha1.ExtensionRollout, specChange, []*v1alpha1.ExtensionRolloutRecord,
) error {
	return nil
}

func (c clusterRollouts) update(ctx context.Context, of *v1alpha1.ExtensionRollout, f specChange) error {
	if err := f(&of.Spec); err != nil {
		return err
	}
	return within(ctx, func(ctx context.Context) error { return c.Update(ctx, of) })
}

func (c clusterRollouts) records(ctx context.Context, f func(record *v1alpha1.ExtensionRolloutRecord)) error {
	list := &v1alpha1.ExtensionRolloutRecordList{}
	for first := true; first || list.Continue != ""; first = false {
		next := list.Continue
		list = &v1alpha1.ExtensionRolloutRecordList{}
		err := within(ctx, func(ctx context.Context) error {
			return c.List(ctx, list, client.Limit(recordsPage), client.Continue(next))
		})
		if err != nil {
			return fmt.Errorf("list %ss: %w", rollout.RecordKind, target.NotServed(rollout.RecordKind, err))
		}
		for i := range list.Items {
			f(&list.Items[i])
		}
	}
	return nil
}

func (c clusterRollouts) remove(ctx context.Context, record *v1alpha1.ExtensionRolloutRecord) error {
	same := client.Preconditions{UID: &record.UID, ResourceVersion: &record.ResourceVersion}
	return within(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(c.Delete(ctx, record, same)) })
}

func (clusterRollouts) recordsAt() string { return "kubectl get extensionrolloutrecords -A lists them" }

// clusters calls f with each Cluster of the management cluster.
func (c clusterRollouts) clusters(ctx context.Context, f func(name string, o *unstructured.Unstructured)) error {
	err := target.ServedClusters("ClusterList", func(kind schema.GroupVersionKind) error {
		n, more := 0, ""
		for first := true; first || more != ""; first = false {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			err := within(ctx, func(ctx context.Context) error {
				return c.List(ctx, list, client.Limit(recordsPage), client.Continue(more))
			})
			if err != nil {
				return err
			}
			if n += len(list.Items); n > limits.RolloutClusters {
				return fmt.Errorf("there are more than %d", limits.RolloutClusters)
			}
			for i := range list.Items {
				f(list.Items[i].GetNamespace()+"/"+list.Items[i].GetName(), &list.Items[i])
			}
			more = list.GetContinue()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list Clusters: %w", err)
	}
	return nil
}
