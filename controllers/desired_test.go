// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/hookversions"
)

// describe returns the conditions of an ExtensionConfig, without what follows from their types.
func describe(config *runtimev1.ExtensionConfig) []string {
	var all []string
	for _, key := range []string{"runtime.hookgate.dev/cluster-api-versions", lossesAnnotation} {
		if value, ok := config.Annotations[key]; ok {
			all = append(all, key+": "+value)
		}
	}
	if ca := config.Spec.ClientConfig.CABundle; len(ca) > 0 {
		all = append(all, "caBundle: "+string(ca))
	}
	for _, h := range config.Status.Handlers {
		all = append(
			all,
			fmt.Sprintf(
				"%s %s/%s %d %s",
				h.Name,
				h.RequestHook.APIVersion,
				h.RequestHook.Hook,
				h.TimeoutSeconds,
				h.FailurePolicy,
			),
		)
	}
	for _, c := range config.Status.Conditions {
		all = append(
			all,
			fmt.Sprintf(
				"%s %s of %d since %d: %s %s",
				c.Type,
				c.Status,
				c.ObservedGeneration,
				c.LastTransitionTime.Unix(),
				c.Reason,
				c.Message,
			),
		)
	}
	for _, c := range config.GetV1Beta1Conditions() {
		all = append(
			all,
			fmt.Sprintf(
				"v1beta1 %s %s since %d: %s %s %s",
				c.Type,
				c.Status,
				c.LastTransitionTime.Unix(),
				c.Severity,
				c.Reason,
				c.Message,
			),
		)
	}
	return all
}

func TestDesired(t *testing.T) {
	at := func(seconds int64) metav1.Time { return metav1.Unix(seconds, 0) }
	implementing := func(name, version string) registry.Handler {
		return registry.Handler{
			Name: name,
			Hook: hook.GroupVersionHook{
				Group:   hookversions.Group,
				Version: version,
				Hook:    hookversions.BeforeNodeDrain,
			},
			Timeout:           3 * time.Second,
			FailurePolicy:     hook.Ignore,
			ClusterAPIVersion: "v1beta1",
		}
	}
	b := implementing("b", "v1")
	b.ClusterAPIVersion = ""
	found := &extension.Discovered{Handlers: []registry.Handler{b, implementing("a", "v1")}}
	// known is an ExtensionConfig that was discovered at second 10, for generation 4.
	known := &runtimev1.ExtensionConfig{}
	known.Name, known.Generation = "acme", 4
	known = desired(
		&observation{
			config:   known,
			hooks:    hookversions.New(),
			now:      at(10),
			leads:    true,
			found:    found,
			handlers: found.Handlers,
		},
	)
	const (
		stated    = `runtime.hookgate.dev/cluster-api-versions: {"a":"v1beta1"}`
		handlerA  = "a.acme hooks.test.hookgate.dev/v1/BeforeNodeDrain 3 Ignore"
		handlerB  = "b.acme hooks.test.hookgate.dev/v1/BeforeNodeDrain 3 Ignore"
		notPaused = "Paused False of 4 since 10: NotPaused "
		isTrue    = "Discovered True of 4 since 10: Discovered "
		served    = "Served True of 4 since 10: REST 2"
		oldTrue   = "v1beta1 Discovered True since 10:   "
	)
	later := known.DeepCopy()
	later.Generation = 5
	ignored := known.DeepCopy()
	ignored.Annotations[lossesAnnotation] = "garbage"

	for name, tc := range map[string]struct {
		reason string
		o      observation
		want   []string
	}{
		"discovered": {"the status is complete", observation{config: known, found: found}, []string{stated, handlerA, handlerB, notPaused, isTrue, served, oldTrue}},
		"later": {
			"the conditions are true of the new generation, since they became true",
			observation{config: later, found: found},
			[]string{stated, handlerA, handlerB, "Paused False of 5 since 10: NotPaused ", "Discovered True of 5 since 10: Discovered ", "Served True of 5 since 10: REST 2", oldTrue},
		},
		"nothing stated": {
			"there is no annotation without something to say",
			observation{config: known, found: &extension.Discovered{Handlers: []registry.Handler{b}}},
			[]string{handlerB, notPaused, isTrue, "Served True of 4 since 10: REST 1", oldTrue},
		},
		"remarks": {
			"what may surprise is in the message",
			observation{config: known, sharing: []string{"y", "x"}, found: &extension.Discovered{
				Handlers: found.Handlers, Skipped: []extension.Skipped{{Name: "new", Reason: "hook is not known"}},
			}},
			[]string{stated, handlerA, handlerB, notPaused, `Discovered True of 4 since 10: Discovered handler "new" is left out: hook is not known; ` +
				"the same URL is also registered by ExtensionConfig x, y: the handlers are called once for each registration; delete the registrations that are not wanted", served, oldTrue},
		},
		"failed": {
			"the handlers and what they state stay",
			observation{config: later, problem: "connection refused", retry: true},
			[]string{
				stated, handlerA, handlerB, "Paused False of 5 since 10: NotPaused ", "Discovered False of 5 since 20: NotDiscovered connection refused; its last known handlers are still served: 2",
				"Served True of 5 since 10: REST 2 last known",
				"v1beta1 Discovered False since 20: Error DiscoveryFailed connection refused; its last known handlers are still served: 2",
			},
		},
		"over gRPC, without handlers": {
			"there is nothing to serve",
			observation{config: &runtimev1.ExtensionConfig{}, problem: "connection refused", protocol: registry.GRPC},
			[]string{
				"Paused False of 0 since 20: NotPaused ", "Discovered False of 0 since 20: NotDiscovered connection refused",
				"Served False of 0 since 20: GRPC 0", "v1beta1 Discovered False since 20: Error DiscoveryFailed connection refused",
			},
		},
		"paused": {"nothing else is decided", observation{config: later, paused: true}, []string{
			stated, handlerA, handlerB, "Paused True of 5 since 20: Paused annotation cluster.x-k8s.io/paused is set", isTrue, served, oldTrue,
		}},
		"CA": {
			"the extension is called with it before anything else is said",
			observation{config: later, ca: []byte("PEM"), versions: map[string]string{"a": "v1beta1"}, recorded: map[string][]string{"a": {"cluster.spec.a"}}},
			[]string{stated, "caBundle: PEM", handlerA, handlerB, notPaused, isTrue, served, oldTrue},
		},
		"deprecated": {
			"a warning says so",
			observation{config: known, found: found, handlers: []registry.Handler{implementing("c", "v1alpha1")}},
			[]string{stated, handlerA, handlerB, notPaused, isTrue, served, "DeprecatedHookVersions True of 4 since 20: Deprecated " +
				`handler "c" implements hooks.test.hookgate.dev/v1alpha1, which is deprecated since v0.4.0 of the gateway: it should implement hooks.test.hookgate.dev/v1`, oldTrue},
		},
		"losses": {
			"what was lost is there for replicas and for operators",
			observation{config: known, found: found, versions: map[string]string{"a": "v1beta1"}, recorded: map[string][]string{"a": {"cluster.spec.a"}}},
			[]string{
				stated, lossesAnnotation + `: {"generation":4,"handlers":{"a":{"version":"v1beta1","paths":["cluster.spec.a"]}}}`, handlerA, handlerB, notPaused, isTrue, served,
				"ConversionLossy True of 4 since 20: MembersLost Conversions could not express these members and left them out, " +
					"by handler and the version that it understands: a (v1beta1) cluster.spec.a", oldTrue,
			},
		},
		"no losses": {"a wrong annotation goes, too", observation{config: ignored, found: found, versions: map[string]string{}}, []string{stated, handlerA, handlerB, notPaused, isTrue, served, oldTrue}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.hooks, tc.o.now, tc.o.leads = hookversions.New(), at(20), true
			before := tc.o.config.DeepCopy()
			got := desired(&tc.o)
			if diff := cmp.Diff(tc.want, describe(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, tc.o.config); diff != "" {
				t.Errorf("what was observed has changed (-before +after):\n%s", diff)
			}
			tc.o.config, tc.o.now = got, at(30)
			tc.o.losses, _ = readLosses(got)
			if diff := cmp.Diff(describe(got), describe(desired(&tc.o))); diff != "" {
				t.Errorf("it does not settle (-once +twice):\n%s", diff)
			}
		})
	}
	t.Run("follower", func(t *testing.T) {
		o := observation{
			config:   later,
			hooks:    hookversions.New(),
			now:      at(20),
			handlers: []registry.Handler{implementing("a", "v1alpha1")},
		}
		if diff := cmp.Diff(later, desired(&o)); diff != "" {
			t.Errorf("a follower that has seen no losses wants something (-is +wants):\n%s", diff)
		}
		o.versions, o.recorded = map[string]string{"a": "v1beta1"}, map[string][]string{"a": {"cluster.spec.a"}}
		want := append(
			[]string{
				stated,
				lossesAnnotation + `: {"generation":5,"handlers":{"a":{"version":"v1beta1","paths":["cluster.spec.a"]}}}`,
			},
			handlerA,
			handlerB,
			notPaused,
			isTrue,
			served,
			"ConversionLossy True of 5 since 20: MembersLost Conversions could not express these members and left them out, by handler and the version that it understands: a (v1beta1) cluster.spec.a",
			oldTrue,
		)
		if diff := cmp.Diff(want, describe(desired(&o))); diff != "" {
			t.Errorf("a follower that has seen losses adds them and nothing else (-want +got):\n%s", diff)
		}
	})
	t.Run("unreadable", func(t *testing.T) {
		o := observation{
			config:     known.DeepCopy(),
			hooks:      hookversions.New(),
			now:        at(20),
			leads:      true,
			problem:    "connection refused",
			unreadable: true,
		}
		o.setWarning(o.config, deprecatedCondition, deprecatedReason, "as it was")
		if got := describe(
			desired(&o),
		); !strings.Contains(
			strings.Join(got, "\n"),
			"DeprecatedHookVersions True of 4 since 20: Deprecated as it was",
		) {
			t.Errorf("of handlers that cannot be read, nothing is known: %s", got)
		}
	})
}

// The API server refuses a condition that is too long, and then nothing of the status is written.
func TestMessagesAreBounded(t *testing.T) {
	config := &runtimev1.ExtensionConfig{}
	config.Name = "acme"
	message := func(o observation) string {
		o.config, o.leads = config, true
		return desired(&o).Status.Conditions[1].Message
	}
	skipped := func(n int) *extension.Discovered {
		found := &extension.Discovered{}
		for i := range n {
			found.Skipped = append(found.Skipped, extension.Skipped{Name: fmt.Sprintf("h%d", i), Reason: "hook is not known"})
		}
		return found
	}
	if got := message(
		observation{found: skipped(maxListed)},
	); !strings.HasSuffix(
		got,
		`; handler "h7" is left out: hook is not known`,
	) {
		t.Errorf("message of %d handlers that are left out: %s", maxListed, got)
	}
	if got := message(observation{found: skipped(512)}); !strings.HasSuffix(got, "; 504 more handlers are left out") {
		t.Errorf("message of 512 handlers that are left out: %s", got)
	}
	var many []string
	for i := range maxListed + 1 {
		many = append(many, fmt.Sprintf("x%d", i))
	}
	if got := message(observation{found: skipped(0), sharing: many}); !strings.Contains(got, "x6, x7 and 1 more: the handlers are called once for each registration") {
		t.Errorf("message of %d ExtensionConfigs with one URL: %s", len(many)+1, got)
	}
	if got := message(
		observation{problem: strings.Repeat("x", limits.ConditionMessageBytes)},
	); len(got) != limits.ConditionMessageBytes ||
		strings.HasSuffix(got, "…") {
		t.Errorf("a message of the greatest length is cut to %d bytes", len(got))
	}
	config.Status.Handlers = make([]runtimev1.ExtensionHandler, 3)
	if got := message(
		observation{problem: strings.Repeat("x", limits.ConditionMessageBytes)},
	); len(got) != limits.ConditionMessageBytes || !strings.HasSuffix(got, "x…; its last known handlers are still served: 3") {
		t.Errorf("a message with handlers is cut to %d bytes, and ends with %q", len(got), got[len(got)-60:])
	}
	config.Status.Handlers = nil
	got := message(observation{problem: strings.Repeat("ä", limits.ConditionMessageBytes)})
	if len(got) > limits.ConditionMessageBytes || !strings.HasSuffix(got, "ä…") {
		t.Errorf("message of %d bytes ends with %q", len(got), got[len(got)-8:])
	}
}

func TestIsDiscoveredNeedsThePresentGeneration(t *testing.T) {
	config := &runtimev1.ExtensionConfig{}
	config.Generation = 2
	if isDiscovered(config) {
		t.Error("without a condition, it counts as discovered")
	}
	config.Status.Conditions = []metav1.Condition{
		{Type: "Discovered", Status: metav1.ConditionTrue, ObservedGeneration: 1},
	}
	if isDiscovered(config) {
		t.Error("what was discovered for another spec counts")
	}
	config.Status.Conditions[0].ObservedGeneration = 2
	if !isDiscovered(config) {
		t.Error("what was discovered for this spec does not count")
	}
	config.Status.Conditions[0].Status = metav1.ConditionFalse
	if isDiscovered(config) {
		t.Error("a failure counts")
	}
}

func TestNotices(t *testing.T) {
	config := func(handlers int, conditions ...metav1.Condition) *runtimev1.ExtensionConfig {
		c := &runtimev1.ExtensionConfig{}
		c.Status.Handlers, c.Status.Conditions = make([]runtimev1.ExtensionHandler, handlers), conditions
		return c
	}
	condition := func(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: kind + "Reason", Message: message}
	}
	const isTrue, isFalse = metav1.ConditionTrue, metav1.ConditionFalse
	withCA := config(0)
	withCA.Spec.ClientConfig.CABundle = []byte("PEM")
	for name, tc := range map[string]struct {
		reason        string
		before, after *runtimev1.ExtensionConfig
		want          []notice
	}{
		"nothing": {"unchanged conditions have no event", config(1, condition("Discovered", isTrue, "m")), config(1, condition("Discovered", isTrue, "m")), nil},
		"CA": {"it is called in another way", config(0), withCA, []notice{
			{"Normal", "CABundleInjected", "InjectCABundle", "caBundle is now set from the Secret in annotation runtime.cluster.x-k8s.io/inject-ca-from-secret", true},
		}},
		"never paused": {"that is as usual", config(0), config(0, condition("Paused", isFalse, "")), nil},
		"paused":       {"an operator has done it", config(0), config(0, condition("Paused", isTrue, "m")), []notice{{"Normal", "PausedReason", "Discover", "m", false}}},
		"not paused any more": {"an operator has done it", config(0, condition("Paused", isTrue, "m")), config(0, condition("Paused", isFalse, "")), []notice{
			{"Normal", "PausedReason", "Discover", "annotation cluster.x-k8s.io/paused is gone", false},
		}},
		"discovered":    {"it works", config(0), config(2, condition("Discovered", isTrue, "")), []notice{{"Normal", "DiscoveredReason", "Discover", "the extension has 2 handlers", false}}},
		"more handlers": {"what is called is another", config(1, condition("Discovered", isTrue, "")), config(2, condition("Discovered", isTrue, "")), []notice{{"Normal", "DiscoveredReason", "Discover", "the extension has 2 handlers", false}}},
		"remark":        {"it may surprise", config(1, condition("Discovered", isTrue, "")), config(1, condition("Discovered", isTrue, "m")), []notice{{"Warning", "DiscoveredReason", "Discover", "the extension has 1 handlers; m", false}}},
		"failed":        {"it does not work", config(1, condition("Discovered", isTrue, "")), config(1, condition("Discovered", isFalse, "m")), []notice{{"Warning", "DiscoveredReason", "Discover", "m", false}}},
		"still failed":  {"it was said", config(1, condition("Discovered", isFalse, "m")), config(1, condition("Discovered", isFalse, "m")), nil},
		"warnings": {
			"both are for operators", config(0), config(0, condition("ConversionLossy", isTrue, "l"), condition("DeprecatedHookVersions", isTrue, "d")),
			[]notice{{"Warning", "ConversionLossyReason", "Convert", "l", false}, {"Warning", "DeprecatedHookVersionsReason", "Discover", "d", false}},
		},
		"same warnings": {"they were said", config(0, condition("ConversionLossy", isTrue, "l"), condition("DeprecatedHookVersions", isTrue, "d")), config(0, condition("ConversionLossy", isTrue, "l"), condition("DeprecatedHookVersions", isTrue, "d")), nil},
		"other":         {"it is not the gateway's", config(0), config(0, condition("Other", isTrue, "m")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, notices(tc.before, tc.after), cmp.AllowUnexported(notice{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	long := notices(config(0), config(0, condition("Discovered", isFalse, strings.Repeat("x", limits.EventNoteBytes+1))))
	if n := len(long[0].note); n > limits.EventNoteBytes || long[0].kind != corev1.EventTypeWarning {
		t.Errorf("a note has %d bytes, which the API server refuses", n)
	}
}
