// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/controllers/extensionconfig"
	"github.com/hookgate/hookgate/extension"
)

const (
	// maxMessage and maxNote are how much of a text conditions and events take. The API has room for 32 KiB and 1 KiB.
	maxMessage = 4 << 10
	maxNote    = 1000
	// maxListed is how many names a message lists.
	maxListed = 8
)

// discovered tells whether the status of config has the handlers of its extension as config is now.
func discovered(config *runtimev1.ExtensionConfig) bool {
	c := meta.FindStatusCondition(config.Status.Conditions, runtimev1.ExtensionConfigDiscoveredCondition)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == config.Generation
}

// pausedStatus returns the status of an ExtensionConfig that is paused: as it was, but for the condition that says so.
func pausedStatus(config *runtimev1.ExtensionConfig) *runtimev1.ExtensionConfig {
	desired := config.DeepCopy()
	meta.SetStatusCondition(&desired.Status.Conditions, metav1.Condition{
		Type: clusterv1.PausedCondition, Status: metav1.ConditionTrue, Reason: clusterv1.PausedReason,
		Message: "annotation " + clusterv1.PausedAnnotation + " is set", ObservedGeneration: config.Generation,
	})
	return desired
}

// failedStatus returns the status of an ExtensionConfig that was not discovered. Its handlers are the last known ones.
func failedStatus(config *runtimev1.ExtensionConfig, message string) *runtimev1.ExtensionConfig {
	desired := notPausedStatus(config)
	message = cut(message, maxMessage)
	meta.SetStatusCondition(&desired.Status.Conditions, metav1.Condition{
		Type: runtimev1.ExtensionConfigDiscoveredCondition, Status: metav1.ConditionFalse,
		Reason: runtimev1.ExtensionConfigNotDiscoveredReason, Message: message, ObservedGeneration: config.Generation,
	})
	setDeprecated(desired, clusterv1.Condition{
		Type: runtimev1.RuntimeExtensionDiscoveredV1Beta1Condition, Status: corev1.ConditionFalse,
		Severity: clusterv1.ConditionSeverityError, Reason: runtimev1.DiscoveryFailedV1Beta1Reason, Message: message,
	})
	return desired
}

// discoveredStatus returns the status of an ExtensionConfig whose extension has answered. What is legal but may surprise
// is in the message: handlers that are left out, and other ExtensionConfigs that register the same extension.
func discoveredStatus(config *runtimev1.ExtensionConfig, found extension.Discovered, sharing []string) *runtimev1.ExtensionConfig {
	desired := notPausedStatus(config)
	desired.Status.Handlers = statusHandlers(config.Name, found)
	var remarks []string
	for i, s := range found.Skipped {
		if i == maxListed {
			remarks = append(remarks, fmt.Sprintf("%d more handlers are left out", len(found.Skipped)-i))
			break
		}
		remarks = append(remarks, fmt.Sprintf("handler %q is left out: %s", s.Name, s.Reason))
	}
	if len(sharing) > 0 {
		listed := strings.Join(sharing[:min(len(sharing), maxListed)], ", ")
		if more := len(sharing) - maxListed; more > 0 {
			listed += fmt.Sprintf(" and %d more", more)
		}
		remarks = append(remarks, "the same URL is registered by ExtensionConfig "+listed+
			", too: its handlers are called once for each registration; delete those that are not wanted")
	}
	meta.SetStatusCondition(&desired.Status.Conditions, metav1.Condition{
		Type: runtimev1.ExtensionConfigDiscoveredCondition, Status: metav1.ConditionTrue,
		Reason: runtimev1.ExtensionConfigDiscoveredReason, Message: cut(strings.Join(remarks, "; "), maxMessage),
		ObservedGeneration: config.Generation,
	})
	setDeprecated(desired, clusterv1.Condition{
		Type: runtimev1.RuntimeExtensionDiscoveredV1Beta1Condition, Status: corev1.ConditionTrue,
	})
	return desired
}

func notPausedStatus(config *runtimev1.ExtensionConfig) *runtimev1.ExtensionConfig {
	desired := config.DeepCopy()
	meta.SetStatusCondition(&desired.Status.Conditions, metav1.Condition{
		Type: clusterv1.PausedCondition, Status: metav1.ConditionFalse, Reason: clusterv1.NotPausedReason,
		ObservedGeneration: config.Generation,
	})
	return desired
}

// statusHandlers returns the handlers as the status has them, by registered name.
func statusHandlers(config string, found extension.Discovered) []runtimev1.ExtensionHandler {
	var handlers []runtimev1.ExtensionHandler
	for _, h := range found.Handlers {
		handlers = append(handlers, runtimev1.ExtensionHandler{
			Name:           h.Name + "." + config,
			RequestHook:    runtimev1.GroupVersionHook{APIVersion: h.Hook.Group + "/" + h.Hook.Version, Hook: h.Hook.Hook},
			TimeoutSeconds: int32(h.Timeout / time.Second),
			FailurePolicy:  runtimev1.FailurePolicy(h.FailurePolicy),
		})
	}
	slices.SortFunc(handlers, func(a, b runtimev1.ExtensionHandler) int { return strings.Compare(a.Name, b.Name) })
	return handlers
}

// setDeprecated sets a condition of the form before v1beta2, for those who still read it.
func setDeprecated(config *runtimev1.ExtensionConfig, c clusterv1.Condition) {
	conditions := config.GetV1Beta1Conditions()
	i := slices.IndexFunc(conditions, func(o clusterv1.Condition) bool { return o.Type == c.Type })
	if i < 0 {
		c.LastTransitionTime = metav1.NewTime(time.Now().Truncate(time.Second))
		config.SetV1Beta1Conditions(append(conditions, c))
		return
	}
	c.LastTransitionTime = conditions[i].LastTransitionTime
	if conditions[i] != c {
		c.LastTransitionTime = metav1.NewTime(time.Now().Truncate(time.Second))
		conditions[i] = c
	}
}

// setWarning sets a condition that is there only while there is something to say.
func setWarning(config *runtimev1.ExtensionConfig, kind, reason, message string) {
	if message == "" {
		meta.RemoveStatusCondition(&config.Status.Conditions, kind)
		return
	}
	meta.SetStatusCondition(&config.Status.Conditions, metav1.Condition{
		Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: config.Generation,
	})
}

// write is patchStatus for the leader, with the conditions that warn of the handlers in the status. Where these cannot be read, the
// conditions stay as they are.
func (r *reconciler) write(ctx context.Context, config, desired *runtimev1.ExtensionConfig, next time.Duration) time.Duration {
	if handlers, _, errs := extensionconfig.LastKnownHandlers(desired, r.hooks); len(errs) == 0 {
		r.setLossy(desired, handlers)
		setWarning(desired, deprecatedCondition, deprecatedReason, deprecatedMessage(handlers, r.hooks))
	}
	return r.patchStatus(ctx, config, desired, next)
}

// patchStatus brings desired, which differs from config in its status only, to the API server, if it differs. It returns next,
// or how long to wait if the API server refused.
func (r *reconciler) patchStatus(ctx context.Context, config, desired *runtimev1.ExtensionConfig, next time.Duration) time.Duration {
	if equality.Semantic.DeepEqual(config.Status, desired.Status) {
		return next
	}
	status := desired.Status
	// The lock keeps two writers from mixing their conditions, which a merge patch replaces as a whole.
	patch := client.MergeFromWithOptions(config, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, desired, patch); err != nil {
		return r.failed(ctx, config, fmt.Errorf("write status: %w", err))
	}
	r.tell(config, &status)
	return next
}

// tell makes an event of a change that operators care about.
func (r *reconciler) tell(before *runtimev1.ExtensionConfig, status *runtimev1.ExtensionConfigStatus) {
	for _, c := range status.Conditions {
		old := meta.FindStatusCondition(before.Status.Conditions, c.Type)
		same := old != nil && old.Status == c.Status && old.Message == c.Message
		kind, action, note := corev1.EventTypeNormal, "Discover", c.Message
		switch {
		case c.Type == clusterv1.PausedCondition && !same && (old != nil || c.Status == metav1.ConditionTrue):
			if c.Status != metav1.ConditionTrue {
				note = "annotation " + clusterv1.PausedAnnotation + " is gone"
			}
		case c.Type == runtimev1.ExtensionConfigDiscoveredCondition && c.Status != metav1.ConditionTrue && !same:
			kind = corev1.EventTypeWarning
		case c.Type == runtimev1.ExtensionConfigDiscoveredCondition && c.Status == metav1.ConditionTrue &&
			(!same || !slices.Equal(before.Status.Handlers, status.Handlers)):
			note = fmt.Sprintf("the extension has %d handlers", len(status.Handlers))
			if c.Message != "" {
				kind, note = corev1.EventTypeWarning, note+"; "+c.Message
			}
		case c.Type == lossyCondition && !same:
			kind, action = corev1.EventTypeWarning, "Convert"
		case c.Type == deprecatedCondition && !same:
			kind = corev1.EventTypeWarning
		default:
			continue
		}
		r.event(before, kind, c.Reason, action, note)
	}
}

func (r *reconciler) event(config *runtimev1.ExtensionConfig, kind, reason, action, note string) {
	r.events.Eventf(config, nil, kind, reason, action, "%s", cut(note, maxNote))
}

// cut shortens s to n bytes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len("…")], "") + "…"
}

// namesBut returns the names of configs, without that one, in order.
func namesBut(configs []runtimev1.ExtensionConfig, but string) []string {
	var names []string
	for i := range configs {
		if configs[i].Name != but {
			names = append(names, configs[i].Name)
		}
	}
	slices.Sort(names)
	return names
}
