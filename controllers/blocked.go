// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"log/slog"
	"sync"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/hookrule"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/notify"
	"github.com/hookgate/hookgate/internal/text"
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

// blocks are the last updates in place of objects that HandlerChains have blocked, and the last answers of HookRules
// with action: Audit, that no event was written about. Callers ask again and again, so that what there is no room for
// comes back.
type blocks struct {
	mu      sync.Mutex
	pending map[corev1.ObjectReference]block
	added   *notify.Signal
}

// block is what is to be said about an object.
type block struct {
	kind, reason, action string // of the event
	related              corev1.ObjectReference
	message              string
}

func newBlocks() *blocks {
	return &blocks{pending: map[corev1.ObjectReference]block{}, added: notify.NewSignal()}
}

func (b *blocks) add(owner corev1.ObjectReference, latest block) {
	b.mu.Lock()
	if _, known := b.pending[owner]; known || len(b.pending) < limits.BlockedOwners {
		b.pending[owner] = latest
	}
	b.mu.Unlock()
	b.added.Notify()
}

// take returns one object, if there is any.
func (b *blocks) take() (owner corev1.ObjectReference, latest block, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for owner, latest = range b.pending {
		delete(b.pending, owner)
		return owner, latest, true
	}
	return owner, latest, false
}

// record writes an event for each object, until ctx is done. Reading the object first gives the event the UID by which
// kubectl describe finds it, and a caller cannot make the gateway write events about objects that do not exist. While
// the object stays the same, client-go counts repetitions in one event. HookRules are read from rules, a cache: the
// gateway may watch them, and get none.
func (b *blocks) record(
	ctx context.Context, reader, rules client.Reader, recorder events.EventRecorder, logger *slog.Logger,
) {
	pace := rate.NewLimiter(limits.BlockedEventsPerSecond, 1)
	for {
		owner, latest, ok := b.take()
		if !ok {
			select {
			case <-b.added.C():
				continue
			case <-ctx.Done():
				return
			}
		}
		if pace.Wait(ctx) != nil {
			return
		}
		object, from := client.Object(metadataOf(owner.GroupVersionKind())), reader
		if owner.Kind == hookrule.Kind {
			object, from = &v1alpha1.HookRule{}, rules
		}
		if err := from.Get(ctx, client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name}, object); err != nil {
			if ctx.Err() == nil {
				logger.Warn("no event is written, because its object cannot be read", "reason", latest.reason, "kind", owner.Kind,
					"namespace", owner.Namespace, "name", owner.Name, "error", err)
			}
			continue
		}
		var related runtime.Object
		if latest.related.Name != "" {
			related = &latest.related
		}
		recorder.Eventf(object, related, latest.kind, latest.reason, latest.action, "%s",
			text.Cut(latest.message, limits.EventNoteBytes))
	}
}

// Blocked makes the Source write an event about an update in place that a HandlerChain has blocked, unless ReadOnly is
// set. It does not block.
func (s *Source) Blocked(owner corev1.ObjectReference, chain, message string) {
	if !s.config.ReadOnly {
		related := corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: chainKind, Name: chain}
		s.blocks.add(owner, block{corev1.EventTypeWarning, blockedReason, "UpdateInPlace", related, message})
	}
}

// Audited makes the Source write an event about an answer that a HookRule with action: Audit would have given, unless
// ReadOnly is set. It does not block.
func (s *Source) Audited(rule, namespace, cluster, message string) {
	if !s.config.ReadOnly {
		owner := corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: hookrule.Kind, Name: rule}
		related := corev1.ObjectReference{
			APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Namespace: namespace, Name: cluster,
		}
		s.blocks.add(owner, block{corev1.EventTypeNormal, auditReason, "Answer", related, message})
	}
}
