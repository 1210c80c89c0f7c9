// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/hookrule"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/notify"
	"github.com/hookgate/hookgate/internal/text"
)

// holdLiftedReason is the reason of events about Clusters that an annotation lets go on.
const holdLiftedReason = "HoldLifted"

// lift is a hold of a Cluster by a HookRule.
type lift struct {
	rule    string
	cluster types.NamespacedName
}

// lifts are the holds that an annotation has lifted, with what the rules say, and that no event was written about.
// Callers ask again and again, so that a hold is in it once, and what there is no room for comes back.
type lifts struct {
	mu      sync.Mutex
	pending map[lift]string
	added   *notify.Signal
}

func newLifts() *lifts {
	return &lifts{pending: map[lift]string{}, added: notify.NewSignal()}
}

// Lifted implements hookrule.Places. The event is written by record.
func (p *rulePlaces) Lifted(rule string, cluster types.NamespacedName, message string) {
	if p.readOnly {
		return
	}
	l, of := p.lifts, lift{rule, cluster}
	l.mu.Lock()
	if _, known := l.pending[of]; known || len(l.pending) < limits.LiftedHolds {
		l.pending[of] = text.Bounded(message, limits.EventNoteBytes)
	}
	l.mu.Unlock()
	l.added.Notify()
}

// take returns one hold, if there is any.
func (l *lifts) take() (of lift, message string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for of, message = range l.pending {
		delete(l.pending, of)
		return of, message, true
	}
	return of, "", false
}

// record writes an event for each hold that was lifted, until ctx is done. The Cluster is read first: the event has
// its UID, and says which field manager has set the annotation, which is all that an object tells about it.
func (p *rulePlaces) record(ctx context.Context, recorder events.EventRecorder) {
	pace := rate.NewLimiter(limits.BlockedEventsPerSecond, 1)
	for {
		of, message, ok := p.lifts.take()
		if !ok {
			select {
			case <-p.lifts.added.C():
				continue
			case <-ctx.Done():
				return
			}
		}
		if pace.Wait(ctx) != nil {
			return
		}
		o, err := p.params.get(ctx, hookrule.ClusterReference(), of.cluster)
		if err != nil || o == nil {
			if ctx.Err() == nil {
				p.logger.Warn("no event is written about a hold that an annotation has lifted", "hookRule", of.rule,
					"namespace", of.cluster.Namespace, "name", of.cluster.Name, "message", message, "error", err)
			}
			continue
		}
		rule := &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: hookrule.Kind, Name: of.rule}
		recorder.Eventf(o, rule, corev1.EventTypeWarning, holdLiftedReason, "SkipHold", "%s",
			text.Cut(fmt.Sprintf("Goes on although HookRule %q holds it, by the annotation %s%s; the rule says: %s",
				of.rule, v1alpha1.SkipHoldAnnotation, setBy(o.GetManagedFields()), message), limits.EventNoteBytes))
	}
}

// setBy says which field manager has set the annotation.
func setBy(fields []metav1.ManagedFieldsEntry) string {
	for i := range fields {
		of := fields[i].FieldsV1
		if of != nil && bytes.Contains(of.GetRawBytes(), []byte(`"f:`+v1alpha1.SkipHoldAnnotation+`"`)) {
			return fmt.Sprintf(", which the field manager %q has set", text.Printable(fields[i].Manager))
		}
	}
	return ""
}
