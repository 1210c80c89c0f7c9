// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/registry"
)

// maxListed is the number of names that a message lists.
const maxListed = 8

// observation is the observed state of an ExtensionConfig and its surroundings.
type observation struct {
	config     *runtimev1.ExtensionConfig // as in the cluster
	hooks      *catalog.Catalog
	now        metav1.Time
	handlers   []registry.Handler // those discovered now, or else those in the status
	unreadable bool               // the handlers in the status cannot be read, and none were discovered
	protocol   registry.Protocol  // which calls to the extension use

	// The rest concerns a leader, and is the outcome of its attempt: at most one of paused, ca, problem and found is
	// set.
	leads   bool
	paused  bool
	ca      []byte                 // what caBundle has to become before the extension is called
	problem string                 // why the extension was not discovered
	retry   bool                   // the problem may disappear without a change
	found   *extension.Discovered  // what the extension has answered
	sharing []string               // other ExtensionConfigs with the same URL
	called  *registry.Registration // as it is called, nil if it has no handlers
	// withheld are the handlers in the answer that policy, which is the one for the whole extension, does not allow.
	withheld []registry.Handler
	policy   *policy.Policy
	standing standing
	// undiscovered is what becomes of calls because no handlers are known; empty if some are.
	undiscovered hook.FailurePolicy

	// The losses of conversions: those in the annotation, and those recorded by this process since their basis last
	// changed. Nil versions mean that the replica leaves losses as they are.
	losses   lossRecord
	versions map[string]string   // what each handler is converted to
	recorded map[string][]string // paths, by handler

	available *availability // nil leaves the condition Available as it is
	settles   time.Duration // the time until available may say something else, or 0
}

// desired returns the desired state of an ExtensionConfig. It is a pure function.
func desired(o *observation) *runtimev1.ExtensionConfig {
	want := o.config.DeepCopy()
	switch {
	case o.ca != nil:
		want.Spec.ClientConfig.CABundle = o.ca
		return want // the rest is decided once the extension is called with it
	case o.paused:
		o.setCondition(want, clusterv1.PausedCondition, metav1.ConditionTrue, clusterv1.PausedReason,
			"annotation "+clusterv1.PausedAnnotation+" is set")
	case o.found != nil:
		want.Status.Handlers = extensionconfig.StatusHandlers(want.Name, o.found.Handlers)
		setAnnotation(want, extensionconfig.StatedVersionsAnnotation,
			extensionconfig.FormatStatedVersions(o.found.Handlers))
		setAnnotation(want, extensionconfig.GatewaysAnnotation, extensionconfig.FormatGateways(o.found.Handlers))
		o.setDiscoveredAt(want)
		o.setDiscovered(want, metav1.ConditionTrue, runtimev1.ExtensionConfigDiscoveredReason,
			remarks(o.found.Skipped, o.sharing))
		o.setServed(want, strconv.Itoa(len(want.Status.Handlers)))
		o.setWarning(want, withheldCondition, withheldReason, o.withheldMessage())
	case o.problem != "":
		n := len(want.Status.Handlers)
		_, says := want.Annotations[extensionconfig.DiscoveredAtAnnotation]
		if says || o.called != nil && o.called.Pending != nil {
			o.setDiscoveredAt(want) // otherwise, an older gateway has discovered it, maybe elsewhere
		}
		o.setDiscovered(want, metav1.ConditionFalse, runtimev1.ExtensionConfigNotDiscoveredReason,
			o.withLastKnown(n)+unasked[o.undiscovered])
		o.setServed(want, strconv.Itoa(n)+" last known")
	}
	if o.leads && !o.unreadable {
		o.setWarning(want, deprecatedCondition, deprecatedReason, deprecatedMessage(o.handlers, o.hooks))
	}
	if o.leads {
		o.setWarning(want, severalCondition, severalReason, text.Cut(o.standing.several, limits.ConditionMessageBytes))
		o.setWarning(want, collisionCondition, collisionReason,
			text.Cut(o.standing.collision, limits.ConditionMessageBytes))
	}
	if o.available != nil {
		o.setAvailable(want)
	}
	if o.versions != nil {
		losses := o.losses.merge(want.Generation, o.versions, o.recorded)
		setAnnotation(want, lossesAnnotation, losses.format())
		o.setWarning(want, lossyCondition, lossyReason, losses.message())
	}
	return want
}

// setDiscovered sets the conditions of an ExtensionConfig that is not paused, in the form before v1beta2 too.
func (o *observation) setDiscovered(
	want *runtimev1.ExtensionConfig, status metav1.ConditionStatus, reason, message string,
) {
	message = text.Cut(message, limits.ConditionMessageBytes)
	o.setCondition(want, clusterv1.PausedCondition, metav1.ConditionFalse, clusterv1.NotPausedReason, "")
	o.setCondition(want, runtimev1.ExtensionConfigDiscoveredCondition, status, reason, message)

	old := clusterv1.Condition{
		Type: runtimev1.RuntimeExtensionDiscoveredV1Beta1Condition, Status: corev1.ConditionTrue,
		LastTransitionTime: o.now,
	}
	if status != metav1.ConditionTrue {
		old.Status, old.Severity = corev1.ConditionFalse, clusterv1.ConditionSeverityError
		old.Reason, old.Message = runtimev1.DiscoveryFailedV1Beta1Reason, message
	}
	conditions := want.GetV1Beta1Conditions()
	i := slices.IndexFunc(conditions, func(c clusterv1.Condition) bool { return c.Type == old.Type })
	if i < 0 {
		want.SetV1Beta1Conditions(append(conditions, old))
		return
	}
	since := conditions[i].LastTransitionTime
	if conditions[i].LastTransitionTime = o.now; conditions[i] == old {
		old.LastTransitionTime = since
	}
	conditions[i] = old
}

// unasked says what becomes of calls while no handlers are known.
var unasked = map[hook.FailurePolicy]string{
	hook.Fail:   "; calls to all handlers of a hook fail until its handlers are known",
	hook.Ignore: "; it was never discovered, so calls to all handlers of a hook are answered without it",
}

// The condition Withheld lists the handlers that wait for a policy that allows them.
const (
	withheldCondition = "Withheld"
	withheldReason    = "NotInHooks"
)

func (o *observation) withheldMessage() string {
	if len(o.withheld) == 0 {
		return ""
	}
	names := make([]string, len(o.withheld))
	for i, h := range o.withheld {
		names[i] = fmt.Sprintf("%s (%s)", h.Name, h.Hook.Hook)
	}
	return fmt.Sprintf("these handlers are not served, because spec.hooks of %s does not list their hooks: %s",
		o.policy, text.Join(names, ", ", maxListed))
}

// setDiscoveredAt says where the handlers in the status are called, for replicas that start later.
func (o *observation) setDiscoveredAt(want *runtimev1.ExtensionConfig) {
	if o.called != nil {
		setAnnotation(want, extensionconfig.DiscoveredAtAnnotation, extensionconfig.LastClientOf(o.called).String())
	}
}

// withLastKnown adds to the problem how many handlers are served, and where, though the extension was not discovered.
func (o *observation) withLastKnown(n int) string {
	if n == 0 {
		return o.problem
	}
	where := ""
	if o.called != nil && o.called.Pending != nil {
		where = " " + extensionconfig.PreviousClient(o.called)
	}
	served := fmt.Sprintf("; its last known handlers are still served%s: %d", where, n)
	return text.Cut(o.problem, limits.ConditionMessageBytes-len(served)) + served
}

// servedCondition says how many handlers of an ExtensionConfig are served. Its reason is the protocol. The columns of
// kubectl show both: they cannot count, and the protocol is a matter of policies.
const servedCondition = "Served"

// setServed sets the condition Served.
func (o *observation) setServed(want *runtimev1.ExtensionConfig, handlers string) {
	status, protocol := metav1.ConditionTrue, "REST"
	if o.protocol == registry.GRPC {
		protocol = "GRPC"
	}
	if len(want.Status.Handlers) == 0 {
		status, handlers = metav1.ConditionFalse, "0"
	}
	o.setCondition(want, servedCondition, status, protocol, handlers)
}

// setWarning sets a condition, or removes it if message is empty.
func (o *observation) setWarning(want *runtimev1.ExtensionConfig, kind, reason, message string) {
	if message == "" {
		meta.RemoveStatusCondition(&want.Status.Conditions, kind)
		return
	}
	o.setCondition(want, kind, metav1.ConditionTrue, reason, message)
}

func (o *observation) setCondition(
	want *runtimev1.ExtensionConfig, kind string, status metav1.ConditionStatus, reason, message string,
) {
	meta.SetStatusCondition(&want.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: want.Generation, LastTransitionTime: o.now,
	})
}

// setAnnotation sets an annotation, or removes it if the value is empty.
func setAnnotation(want *runtimev1.ExtensionConfig, key, value string) {
	if value == "" {
		delete(want.Annotations, key)
		return
	}
	metav1.SetMetaDataAnnotation(&want.ObjectMeta, key, value)
}

// isDiscovered reports whether the status of config has the handlers of its extension as config is now.
func isDiscovered(config *runtimev1.ExtensionConfig) bool {
	c := meta.FindStatusCondition(config.Status.Conditions, runtimev1.ExtensionConfigDiscoveredCondition)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == config.Generation
}

// isCurrent reports whether the status has the handlers of x as it is now: its protocol comes from a policy, which no
// generation counts.
func isCurrent(config *runtimev1.ExtensionConfig, x *extensionconfig.Extension) bool {
	return isDiscovered(config) && (x.LastClient == nil || x.LastClient.Is(&x.ClientConfig))
}

// remarks returns a text about legal but surprising facts: handlers that are left out, and other ExtensionConfigs that
// register the same extension.
func remarks(skipped []extension.Skipped, sharing []string) string {
	var all []string
	for _, s := range skipped[:min(len(skipped), maxListed)] {
		all = append(all, fmt.Sprintf("handler %q is left out: %s", s.Name, s.Reason))
	}
	if more := len(skipped) - maxListed; more > 0 {
		all = append(all, fmt.Sprintf("%d more handlers are left out", more))
	}
	if len(sharing) > 0 {
		names := text.Join(slices.Sorted(slices.Values(sharing)), ", ", maxListed)
		all = append(all, "the same URL is also registered by ExtensionConfig "+names+
			": the handlers are called once for each registration; delete the registrations that are not wanted")
	}
	return strings.Join(all, "; ")
}
