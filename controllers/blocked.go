// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"log/slog"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
	"github.com/hookgate/hookgate/internal/kinds/hookjob"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
)

// The kinds of which only the metadata of one object is read, for an event.
var (
	controlPlaneKind = schema.GroupVersionKind{
		Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmControlPlane",
	}
	deploymentKind = clusterv1.GroupVersion.WithKind("MachineDeployment")
)

// blockedReason is the reason of events about updates in place that a HandlerChain has blocked.
const blockedReason = "InPlaceUpdateBlocked"

// auditReason is the reason of events about answers that a HookRule with action: Audit would have given.
const auditReason = "Audit"

// changedReason is the reason of events about answers that have changed although their requests have not.
const changedReason = "AnswerChanged"

// block is what is to be said about an object.
type block struct {
	kind, reason, action string // of the event
	related              corev1.ObjectReference
	message              string
}

// blocks are the last updates in place of objects that HandlerChains have blocked, the last answers of HookRules with
// action: Audit, the last answers of extensions that have changed, and the last failures of Jobs.
type blocks struct {
	*pendingEvents[corev1.ObjectReference, block]
}

func newBlocks() blocks {
	return blocks{newPendingEvents[corev1.ObjectReference, block](limits.BlockedOwners)}
}

// record writes an event for each object, until ctx is done. Reading the object first gives the event the UID by which
// kubectl describe finds it, and a caller cannot make the gateway write events about objects that do not exist. While
// the object stays the same, client-go counts repetitions in one event. HookRules and HookJobs are read from own, a
// cache: the gateway may watch them, and get none.
func (b blocks) record(
	ctx context.Context, reader, own client.Reader, recorder events.EventRecorder, logger *slog.Logger,
) {
	b.each(ctx, func(owner corev1.ObjectReference, latest block) {
		object, from := client.Object(metadataOf(owner.GroupVersionKind())), reader
		switch owner.Kind {
		case hookrule.Kind:
			object, from = &v1alpha1.HookRule{}, own
		case hookjob.Kind:
			object, from = &v1alpha1.HookJob{}, own
		}
		if err := from.Get(ctx, client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name}, object); err != nil {
			if ctx.Err() == nil {
				logger.Warn("no event is written, because its object cannot be read", "reason", latest.reason, "kind", owner.Kind,
					"namespace", owner.Namespace, "name", owner.Name, "error", err)
			}
			return
		}
		var related runtime.Object
		if latest.related.Name != "" {
			related = &latest.related
		}
		recorder.Eventf(object, related, latest.kind, latest.reason, latest.action, "%s",
			text.Cut(latest.message, limits.EventNoteBytes))
	})
}

// Blocked makes the Source write an event about an update in place that a HandlerChain has blocked, unless ReadOnly is
// set. It does not block.
func (s *Source) Blocked(owner corev1.ObjectReference, chain, message string) {
	if !s.config.ReadOnly {
		related := corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: handlerchain.Kind, Name: chain}
		s.blocks.add(owner, block{corev1.EventTypeWarning, blockedReason, "UpdateInPlace", related, message})
	}
}

// Audited makes the Source write an event about an answer that a HookRule with action: Audit would have given, unless
// ReadOnly is set. It does not block.
func (s *Source) Audited(rule, namespace, cluster, message string) {
	if !s.config.ReadOnly {
		owner := corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: hookrule.Kind, Name: rule}
		s.blocks.add(owner, block{corev1.EventTypeNormal, auditReason, "Answer", clusterNamed(namespace, cluster), message})
	}
}

// jobEvent makes the Source write an event about a HookJob because of one of its Jobs, for a Cluster, namespace/name.
// It does not block.
func (s *Source) jobEvent(hookJob, cluster, reason, message string) {
	owner := corev1.ObjectReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: hookjob.Kind, Name: hookJob,
		FieldPath: cluster, // so that each has its own event
	}
	namespace, name, _ := strings.Cut(cluster, "/")
	s.blocks.add(owner, block{corev1.EventTypeWarning, reason, "RunJob", clusterNamed(namespace, name), message})
}

// clusterNamed returns a reference to a Cluster, to which an event is related; the zero value without a name.
func clusterNamed(namespace, name string) corev1.ObjectReference {
	if name == "" {
		return corev1.ObjectReference{}
	}
	return corev1.ObjectReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Namespace: namespace, Name: name,
	}
}

// Changed makes the Source write an event about an answer of an extension that has changed although its request has
// not, unless ReadOnly is set. It does not block.
func (s *Source) Changed(extensionConfig, namespace, cluster, message string) {
	if s.config.ReadOnly {
		return
	}
	kind := runtimev1.GroupVersion.WithKind("ExtensionConfig")
	kind.Group = cmp.Or(s.config.Group, ClusterAPIGroup)
	owner := corev1.ObjectReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: extensionConfig}
	s.blocks.add(owner,
		block{corev1.EventTypeWarning, changedReason, "Answer", clusterNamed(namespace, cluster), message})
}
