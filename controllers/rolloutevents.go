// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/kinds/owner"
)

// rolloutChange is what an event about an ExtensionRollout is about. The Cluster is empty for all of them, or none.
type rolloutChange struct {
	rollout string
	cluster v1alpha1.RolloutCluster
	state   v1alpha1.RolloutState
}

func newRolloutEvents() *pendingEvents[rolloutChange, string] {
	return newPendingEvents[rolloutChange, string](limits.RolloutEvents)
}

// changed notes that a record was stored, for an event. Equal answers are no news.
func (r *rollouts) changed(record *v1alpha1.ExtensionRolloutRecord) {
	spec := &record.Spec
	of, about := rolloutChange{rollout: spec.Rollout, state: spec.State}, "calls about no Cluster"
	if spec.Cluster != nil {
		of.cluster = *spec.Cluster
		about = fmt.Sprintf("Cluster %s/%s", spec.Cluster.Namespace, spec.Cluster.Name)
	}
	switch spec.State {
	case v1alpha1.RolloutStateMoved:
		r.events.add(of, fmt.Sprintf("%s has moved to %s: %s", about, spec.Candidate, spec.Message))
	case v1alpha1.RolloutStateDifferent:
		r.events.add(of, fmt.Sprintf("%s answers differently for %s", spec.Candidate, about))
	case v1alpha1.RolloutStateAborted:
		r.events.add(of, fmt.Sprintf("No more Clusters move to %s: %s", spec.Candidate, spec.Message))
	}
}

// record writes an event for each change, until ctx is done. ExtensionRollouts are read from a cache: the gateway may
// watch them, and get none.
func (r *rollouts) record(ctx context.Context, cache client.Reader, recorder events.EventRecorder) {
	r.events.each(ctx, func(of rolloutChange, note string) {
		object := &v1alpha1.ExtensionRollout{}
		if err := cache.Get(ctx, client.ObjectKey{Name: of.rollout}, object); err != nil {
			return // it was deleted meanwhile
		}
		kind, action := corev1.EventTypeWarning, "Compare"
		switch of.state {
		case v1alpha1.RolloutStateMoved:
			kind, action = corev1.EventTypeNormal, "Move"
		case v1alpha1.RolloutStateAborted:
			action = "Abort"
		}
		var related runtime.Object
		if of.cluster.Name != "" {
			related = &corev1.ObjectReference{
				APIVersion: clusterv1.GroupVersion.String(), Kind: owner.ClusterKind.Kind, Namespace: of.cluster.Namespace,
				Name: of.cluster.Name,
			}
		}
		recorder.Eventf(object, related, kind, string(of.state), action, "%s", text.Cut(note, limits.EventNoteBytes))
	})
}
