// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/hookversions"
)

const (
	discovered = runtimev1.ExtensionConfigDiscoveredCondition
	paused     = clusterv1.PausedCondition
)

// requests returns what was asked for in writes.
func requests(writes []write) []string {
	var list []string
	for _, w := range writes {
		list = append(list, fmt.Sprintf("%s %d", w.request, w.code))
	}
	return list
}

// expectWrites fails the test unless exactly these writes came after a number of others.
func expectWrites(t testing.TB, api *apiServer, after int, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, requests(api.written()[after:]), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestLeaderWritesWhatItDiscovers(t *testing.T) {
	api := newAPIServer(t)
	r := start(t, api, nil)
	r.extensions.serve(named("b", ""), named("a", "v1beta1"))
	api.register("acme", nil)
	config := api.awaitDiscovered(t, "acme")

	hook := runtimev1.GroupVersionHook{APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: "BeforeClusterCreate"}
	want := runtimev1.ExtensionConfigStatus{
		Handlers: []runtimev1.ExtensionHandler{
			{Name: "a.acme", RequestHook: hook, TimeoutSeconds: 10, FailurePolicy: runtimev1.FailurePolicyFail},
			{Name: "b.acme", RequestHook: hook, TimeoutSeconds: 10, FailurePolicy: runtimev1.FailurePolicyFail},
		},
		Conditions: []metav1.Condition{
			{Type: paused, Status: metav1.ConditionFalse, Reason: clusterv1.NotPausedReason, ObservedGeneration: 1},
			{
				Type:               discovered,
				Status:             metav1.ConditionTrue,
				Reason:             runtimev1.ExtensionConfigDiscoveredReason,
				ObservedGeneration: 1,
			},
			{Type: "Served", Status: metav1.ConditionTrue, Reason: "REST", Message: "2", ObservedGeneration: 1},
		},
		Deprecated: &runtimev1.ExtensionConfigDeprecatedStatus{V1Beta1: &runtimev1.ExtensionConfigV1Beta1DeprecatedStatus{
			Conditions: clusterv1.Conditions{
				{Type: runtimev1.RuntimeExtensionDiscoveredV1Beta1Condition, Status: corev1.ConditionTrue},
			},
		}},
	}
	if diff := cmp.Diff(want, config.Status, cmpopts.IgnoreTypes(metav1.Time{})); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	for _, c := range config.Status.Conditions {
		if since := time.Since(c.LastTransitionTime.Time); since < 0 || since > time.Minute {
			t.Errorf("condition %s has changed at %s", c.Type, c.LastTransitionTime)
		}
	}
	if got, want := config.Annotations[extensionconfig.StatedVersionsAnnotation], `{"a":"v1beta1"}`; got != want {
		t.Errorf("annotation of stated versions is %s, want %s", got, want)
	}
	r.awaitServed(t, "a.acme https://acme.example.com", "b.acme https://acme.example.com")
	eventually(t, "one event reports it", func() (string, bool) {
		got := api.events()
		return fmt.Sprint(got), slices.Equal(got, []string{"Normal Discovered: the extension has 2 handlers"})
	})

	eventually(t, "the annotation makes it discover again", func() (string, bool) {
		n := len(r.extensions.calls())
		return strconv.Itoa(n), n == 2
	})
	r.extensions.serve(named("a", ""))
	api.register("acme", func(c *runtimev1.ExtensionConfig) { c.Spec.Settings = map[string]string{"k": "v"} })
	config = api.awaitDiscovered(t, "acme")
	if text, ok := config.Annotations[extensionconfig.StatedVersionsAnnotation]; ok || len(config.Status.Handlers) != 1 {
		t.Errorf("nothing is stated any more: handlers %v, annotation %q", config.Status.Handlers, text)
	}
	r.awaitServed(t, "a.acme https://acme.example.com")
	// A replica that sees handlers sees what they state. What the replica itself has written is no reason to write
	// again.
	expectWrites(t, api, 0, "PATCH acme 200", "PATCH acme/status 200", "PATCH acme 200", "PATCH acme/status 200")
}

func TestFollowerServesWhatTheLeaderWrote(t *testing.T) {
	api := newAPIServer(t)
	api.register("acme", nil)
	first := start(t, api, nil)
	api.awaitDiscovered(t, "acme")
	first.stop()

	r := start(t, api, following(api))
	marked := len(api.written())
	r.extensions.fail("a follower asks")
	r.awaitServed(t, "a.acme https://acme.example.com") // what the status said before it started
	api.register("acme", func(c *runtimev1.ExtensionConfig) {
		other := c.Status.Handlers[0]
		other.Name = "b.acme"
		c.Status.Handlers = append(c.Status.Handlers, other)
		c.Annotations[extensionconfig.StatedVersionsAnnotation] = `{"b":"v1beta2"}`
	})
	r.awaitServed(t, "a.acme https://acme.example.com", "b.acme https://acme.example.com")
	if e, _ := r.registry.Snapshot().Handler("b.acme"); e.Handler.ClusterAPIVersion != "v1beta2" {
		t.Errorf("handler b understands %q, want what the annotation states", e.Handler.ClusterAPIVersion)
	}
	// The condition is about the generation before: the leader has to look at this one first.
	api.register("acme", func(c *runtimev1.ExtensionConfig) {
		c.Spec.ClientConfig.URL, c.Status.Handlers = "https://new.example.com", nil
	})
	api.register("other", func(c *runtimev1.ExtensionConfig) {
		c.Annotations[extensionconfig.StatedVersionsAnnotation] = "garbage"
	})
	r.awaitLog(t, "annotation is invalid; its invalid entries are ignored")
	if got := fmt.Sprint(r.served()); got != "[a.acme https://acme.example.com b.acme https://acme.example.com]" {
		t.Errorf("served is %s, want what was served before the change", got)
	}
	expectWrites(t, api, marked)
	if calls := r.extensions.calls(); len(calls) > 0 {
		t.Errorf("a follower has asked %v", calls)
	}

	r.extensions.serve(named("c", ""))
	api.lease("")
	api.awaitDiscovered(t, "acme")
	r.awaitServed(t, "c.acme https://new.example.com", "c.other https://other.example.com")
}

func TestReaderWritesNothing(t *testing.T) {
	api := newAPIServer(t)
	own, err := extensionconfig.ParseAddresses([]string{"gateway.system.svc"})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, api, func(c *controllers.Config) { c.ReadOnly, c.Own = true, own })
	api.register("self", func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.URL = "https://gateway.system.svc" })
	api.register("acme", func(c *runtimev1.ExtensionConfig) {
		c.Annotations[runtimev1.InjectCAFromSecretAnnotation] = "system/none"
		c.Generation = 1
		c.Status = statusWith(1, "a.acme")
	})
	r.awaitServed(t, "a.acme https://acme.example.com")
	r.awaitLog(t, "is this gateway")
	api.remove(configs + "acme")
	r.awaitServed(t)
	expectWrites(t, api, 0)
	if calls := r.extensions.calls(); len(calls) > 0 {
		t.Errorf("a reader has asked %v", calls)
	}
}

// statusWith returns a status with handlers that were discovered for that generation.
func statusWith(generation int64, names ...string) runtimev1.ExtensionConfigStatus {
	s := runtimev1.ExtensionConfigStatus{Conditions: []metav1.Condition{
		{
			Type:               discovered,
			Status:             metav1.ConditionTrue,
			Reason:             runtimev1.ExtensionConfigDiscoveredReason,
			ObservedGeneration: generation,
		},
	}}
	for _, name := range names {
		s.Handlers = append(s.Handlers, runtimev1.ExtensionHandler{
			Name: name,
			RequestHook: runtimev1.GroupVersionHook{
				APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1",
				Hook:       "BeforeClusterCreate",
			},
			TimeoutSeconds: 10,
			FailurePolicy:  runtimev1.FailurePolicyFail,
		})
	}
	return s
}

func TestPausedIsNotDiscovered(t *testing.T) {
	api := newAPIServer(t)
	r := start(t, api, nil)
	pause := func(c *runtimev1.ExtensionConfig) { c.Annotations[clusterv1.PausedAnnotation] = "" }
	const message = "annotation cluster.x-k8s.io/paused is set"
	api.register("acme", pause)
	config := api.awaitCondition(t, "acme", paused, metav1.ConditionTrue, message)
	if len(config.Status.Conditions) != 1 || config.Status.Conditions[0].Reason != clusterv1.PausedReason ||
		config.Status.Deprecated != nil {
		t.Errorf("status is %+v, want the condition Paused alone", config.Status)
	}
	if calls := r.extensions.calls(); len(calls) > 0 {
		t.Errorf("the extension was asked %d times", len(calls))
	}
	api.register("acme", func(c *runtimev1.ExtensionConfig) { delete(c.Annotations, clusterv1.PausedAnnotation) })
	api.awaitDiscovered(t, "acme")
	api.awaitCondition(t, "acme", paused, metav1.ConditionFalse, "")
	r.awaitServed(t, "a.acme https://acme.example.com")

	r.extensions.fail("a paused one is asked")
	asked := len(r.extensions.calls())
	api.register(
		"acme",
		func(c *runtimev1.ExtensionConfig) { pause(c); c.Spec.ClientConfig.URL = "https://other.example.com" },
	)
	api.awaitCondition(t, "acme", paused, metav1.ConditionTrue, message)
	// A paused one may be wrong, too.
	api.register("acme", func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.URL = "ftp://x" })
	config = api.awaitCondition(t, "acme", paused, metav1.ConditionTrue, message)
	if got, want := requests(
		api.written(),
	), "PATCH acme/status 200"; got[len(got)-1] != want ||
		len(config.Status.Handlers) != 1 {
		t.Errorf("last write is %s, want %s; handlers are %v", got[len(got)-1], want, config.Status.Handlers)
	}
	if calls := r.extensions.calls(); len(calls) > asked {
		t.Errorf("the extension was asked %d times while paused", len(calls)-asked)
	}
	r.awaitServed(t, "a.acme https://acme.example.com")
	eventually(t, "events report it", func() (string, bool) {
		got := api.events()
		return fmt.Sprint(got), slices.Contains(got, "Normal NotPaused: annotation cluster.x-k8s.io/paused is gone") &&
			slices.Contains(got, "Normal Paused: "+message)
	})
}

func TestInvalidIsNotDiscovered(t *testing.T) {
	own, err := extensionconfig.ParseAddresses([]string{"gateway.system.svc"})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason, url, want string
	}{
		"wrong": {"it cannot be called", "ftp://acme.example.com", `spec.clientConfig.url: Invalid value: "ftp://acme.example.com": must begin with https://`},
		"self":  {"a call would return endlessly", "https://gateway.system.svc:443/x", "spec.clientConfig: "},
	} {
		t.Run(name, func(t *testing.T) {
			api := newAPIServer(t)
			r := start(t, api, func(c *controllers.Config) { c.Own = own })
			api.register("acme", nil)
			api.awaitDiscovered(t, "acme")
			asked := len(r.extensions.calls())
			api.register("acme", func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.URL = tc.url })
			var message string
			eventually(t, "the status says what is wrong", func() (string, bool) {
				message = meta.FindStatusCondition(api.get("acme").Status.Conditions, discovered).Message
				return message, strings.HasPrefix(message, tc.want)
			})
			config := api.awaitCondition(t, "acme", discovered, metav1.ConditionFalse, message)
			if old := config.Status.Deprecated.V1Beta1.Conditions; len(old) != 1 || old[0].Status != corev1.ConditionFalse ||
				old[0].Severity != clusterv1.ConditionSeverityError || old[0].Reason != runtimev1.DiscoveryFailedV1Beta1Reason || old[0].Message != message {
				t.Errorf("conditions of v1beta1 are %+v", old)
			}
			if len(config.Status.Handlers) != 1 {
				t.Errorf("handlers are %v, want the last known one", config.Status.Handlers)
			}
			r.awaitServed(t, "a.acme https://acme.example.com")
			r.awaitLog(t, "ExtensionConfig is not served in its current form")
			if calls := r.extensions.calls(); len(calls) > asked {
				t.Errorf("%s: the extension was asked", tc.reason)
			}
		})
	}
}

func TestConflictIsTriedAgainOnce(t *testing.T) {
	api := newAPIServer(t)
	var refused atomic.Bool
	api.before(func(method, path string) error {
		if method == http.MethodPatch && path == configs+"acme/status" && !refused.Swap(true) {
			return apierrors.NewConflict(schema.GroupResource{Resource: "extensionconfigs"}, "acme", errors.New("modified"))
		}
		return nil
	})
	r := start(t, api, nil)
	api.register("acme", nil)
	api.awaitDiscovered(t, "acme")
	expectWrites(t, api, 0, "PATCH acme 200", "PATCH acme/status 409", "PATCH acme/status 200")
	if n := len(r.extensions.calls()); n != 2 {
		t.Errorf("the extension was asked %d times, want once for each write", n)
	}
	if log := r.log.String(); strings.Contains(log, "API server refused") {
		t.Errorf("a conflict is no error: %s", log)
	}
}

func TestStaleWriteIsAConflict(t *testing.T) {
	api := newAPIServer(t)
	r := start(t, api, nil)
	var once atomic.Bool
	r.extensions.set(func(context.Context, registry.ClientConfig) (extension.Discovered, error) {
		if !once.Swap(true) { // the user changes it while its extension is asked
			api.register("acme", func(c *runtimev1.ExtensionConfig) { c.Annotations["changed"] = "meanwhile" })
		}
		return extension.Discovered{Handlers: []registry.Handler{named("a", "v1beta1")}}, nil
	})
	api.register("acme", nil)
	config := api.awaitDiscovered(t, "acme")
	want := []string{"PATCH acme 409", "PATCH acme 200", "PATCH acme/status 200"}
	if diff := cmp.Diff(want, slices.Compact(requests(api.written()))); diff != "" { // conflicts last as long as the watch
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if config.Annotations["changed"] != "meanwhile" {
		t.Errorf("annotations are %v: what the user wrote is gone", config.Annotations)
	}
}

func TestRefusedWriteIsTriedAgain(t *testing.T) {
	for name, path := range map[string]string{"status": configs + "acme/status", "annotation": configs + "acme"} {
		t.Run(name, func(t *testing.T) {
			api := newAPIServer(t)
			var n atomic.Int32
			api.before(func(method, p string) error {
				if method == http.MethodPatch && p == path && n.Add(1) <= 2 {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "extensionconfigs"}, "acme", nil)
				}
				return nil
			})
			r := start(t, api, nil)
			r.extensions.serve(named("a", "v1beta1"))
			api.register("acme", nil)
			api.awaitDiscovered(t, "acme")
			r.awaitLog(t, "API server refused; trying again")
			if n.Load() != 3 {
				t.Errorf("it was written %d times", n.Load())
			}
		})
	}
}

func TestUnchangedOutcomesAreNotWritten(t *testing.T) {
	api := newAPIServer(t)
	own, err := extensionconfig.ParseAddresses([]string{"gateway.system.svc"})
	if err != nil {
		t.Fatal(err)
	}
	answer := func(_ context.Context, c registry.ClientConfig) (extension.Discovered, error) {
		if strings.Contains(c.URL, "down") {
			return extension.Discovered{}, hook.Errorf(hook.Unreachable, "connection refused")
		}
		found := extension.Discovered{Handlers: []registry.Handler{named("b", "v1beta2"), named("a", "")}}
		if strings.Contains(c.URL, "odd") {
			found.Skipped = []extension.Skipped{{Name: "new", Reason: "hook is not known"}}
		}
		return found, nil
	}
	configure := func(c *controllers.Config) {
		c.Resync, c.Own = 10*time.Millisecond, own
		answering(c, answer)
	}
	r := start(t, api, configure)
	api.register("good", nil)
	api.register("odd", nil)
	api.register("twin", func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.URL = "https://odd.example.com" })
	api.register("down", nil)
	api.register("self", func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.URL = "https://gateway.system.svc" })
	api.register("idle", func(c *runtimev1.ExtensionConfig) { c.Annotations[clusterv1.PausedAnnotation] = "" })
	api.register("no-ca", func(c *runtimev1.ExtensionConfig) {
		c.Annotations[runtimev1.InjectCAFromSecretAnnotation] = "system/none"
	})
	const shared = `handler "new" is left out: hook is not known; the same URL is also registered by ExtensionConfig %s: ` +
		"the handlers are called once for each registration; delete the registrations that are not wanted"
	api.awaitDiscovered(t, "good")
	api.awaitCondition(t, "odd", discovered, metav1.ConditionTrue, fmt.Sprintf(shared, "twin"))
	api.awaitCondition(t, "twin", discovered, metav1.ConditionTrue, fmt.Sprintf(shared, "odd"))
	api.awaitCondition(t, "down", discovered, metav1.ConditionFalse, "connection refused; it was never discovered, so calls to all handlers of a hook are answered without it")
	api.awaitCondition(t, "idle", paused, metav1.ConditionTrue, "annotation cluster.x-k8s.io/paused is set")
	eventually(t, "the others have a status", func() (string, bool) {
		return "", len(api.get("self").Status.Conditions) == 3 && len(api.get("no-ca").Status.Conditions) == 3
	})

	marked := len(api.written())
	r.extensions.rounds(t, 40)
	expectWrites(t, api, marked)
	r.stop()
	again := start(t, api, configure)
	again.extensions.rounds(t, 20)
	expectWrites(t, api, marked)

	api.remove(configs + "twin")
	api.awaitCondition(t, "odd", discovered, metav1.ConditionTrue, `handler "new" is left out: hook is not known`)
}

func TestFailureKeepsTheHandlers(t *testing.T) {
	api := newAPIServer(t)
	r := start(t, api, func(c *controllers.Config) { c.Resync = 10 * time.Millisecond })
	r.extensions.serve(named("a", "v1beta1"))
	api.register("acme", nil)
	api.awaitDiscovered(t, "acme")
	r.extensions.fail("connection refused")
	const refused = "connection refused; its last known handlers are still served: 1"
	config := api.awaitCondition(t, "acme", discovered, metav1.ConditionFalse, refused)
	if len(config.Status.Handlers) != 1 ||
		config.Annotations[extensionconfig.StatedVersionsAnnotation] != `{"a":"v1beta1"}` {
		t.Errorf("handlers are %v and annotations %v, want the last known", config.Status.Handlers, config.Annotations)
	}
	r.awaitServed(t, "a.acme https://acme.example.com")
	eventually(t, "an event warns", func() (string, bool) {
		return fmt.Sprint(api.events()), slices.Contains(api.events(), "Warning NotDiscovered: "+refused)
	})
	r.extensions.serve(named("a", "v1beta1"), named("b", ""))
	if config = api.awaitDiscovered(t, "acme"); len(config.Status.Handlers) != 2 {
		t.Errorf("handlers are %v, want both", config.Status.Handlers)
	}
}

// That there is no room for the handlers of an ExtensionConfig closes what they may be for, in every replica, also in
// those that have not asked the extension. It is served once others have gone.
func TestBeyondTheSumOfHandlers(t *testing.T) {
	api := newAPIServer(t)
	r := start(t, api, nil)
	fillers := make([]registry.Registration, 1+limits.AllHandlers/limits.Handlers)
	for i := range fillers {
		fillers[i] = registry.Registration{
			Name: fmt.Sprintf("filler-%d", i), ClientConfig: registry.ClientConfig{URL: "https://filler.example.com"},
		}
		for j := range min(limits.Handlers, limits.AllHandlers-i*limits.Handlers) {
			fillers[i].Handlers = append(fillers[i].Handlers, named(fmt.Sprintf("h%d", j), ""))
		}
	}
	if err := errors.Join(r.registry.ApplyAll(fillers)...); err != nil {
		t.Fatal(err)
	}
	awaits := func(r *replica) {
		t.Helper()
		eventually(t, "calls wait for it", func() (string, bool) {
			var got []string
			for _, u := range r.registry.Snapshot().Undiscovered() {
				got = append(got, u.String()+" "+string(u.Default))
			}
			return fmt.Sprint(got), slices.Equal(got, []string{`ExtensionConfig "acme" Fail`})
		})
	}
	api.register("acme", nil)
	api.awaitCondition(t, "acme", discovered, metav1.ConditionFalse, fmt.Sprintf(`too many handlers: with the handlers of ExtensionConfig "acme" (1), `+
		"there would be %d in total; at most %d are allowed; calls to all handlers of a hook fail until its handlers are known",
		limits.AllHandlers+1, limits.AllHandlers))
	awaits(r)
	r.stop()
	awaits(start(t, api, following(api)))

	api.lease("")
	api.awaitDiscovered(t, "acme") // by one that has room
}

// A new URL waits for a discovery, in every replica, and nothing else of the ExtensionConfig does.
func TestNewURLWaitsForDiscovery(t *testing.T) {
	api := newAPIServer(t)
	r := start(t, api, nil)
	r.extensions.serve(named("a", ""))
	api.register("acme", nil)
	api.awaitDiscovered(t, "acme")
	r.extensions.fail("connection refused")
	api.register("acme", func(c *runtimev1.ExtensionConfig) {
		c.Spec.ClientConfig.URL = "https://new.example.com"
		c.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	})
	config := api.awaitCondition(t, "acme", discovered, metav1.ConditionFalse,
		"connection refused; its last known handlers are still served at the previous URL https://acme.example.com: 1")
	at, errs := extensionconfig.DiscoveredAt(config)
	if len(errs) > 0 || at == nil || at.URL != "https://acme.example.com" || at.Since.IsZero() {
		t.Errorf("the annotation has %v, %v", at, errs)
	}
	isPrevious := func(r *replica) {
		t.Helper()
		r.awaitServed(t, "a.acme https://acme.example.com")
		reg, _ := r.registry.Snapshot().Registration("acme")
		if reg.NamespaceSelector.String() != "tier=gold" {
			t.Errorf("the selector is %s", reg.NamespaceSelector)
		}
		if reg.Pending == nil || reg.Pending.URL != "https://new.example.com" || !reg.Pending.Since.Equal(at.Since) {
			t.Errorf("pending is %v", reg.Pending)
		}
	}
	isPrevious(r)
	r.stop()
	follower := start(t, api, following(api))
	isPrevious(follower)
	follower.extensions.serve(named("b", ""))
	api.lease("")
	config = api.awaitDiscovered(t, "acme")
	follower.awaitServed(t, "b.acme https://new.example.com")
	if got := config.Annotations[extensionconfig.DiscoveredAtAnnotation]; got != `{"url":"https://new.example.com"}` {
		t.Errorf("the annotation is %s", got)
	}
}

func TestNewGenerationStartsTheBackoffOver(t *testing.T) {
	api := newAPIServer(t)
	r := start(t, api, func(c *controllers.Config) {
		c.Backoff = discovery.Backoff{BaseDelay: 10 * time.Millisecond, Multiplier: 1e6, MaxDelay: time.Hour}
	})
	r.extensions.fail("connection refused")
	api.register("acme", nil)
	r.extensions.awaitCalls(t, 2) // the next would be in an hour
	for i := range 2 {
		api.register(
			"acme",
			func(c *runtimev1.ExtensionConfig) { c.Spec.Settings = map[string]string{"change": strconv.Itoa(i)} },
		)
		r.extensions.awaitCalls(t, 4+2*i)
	}
	if n := len(r.extensions.calls()); n != 6 {
		t.Errorf("the extension was asked %d times, want twice for each generation", n)
	}
	r.extensions.serve(named("a", ""))
	api.register("acme", func(c *runtimev1.ExtensionConfig) { c.Annotations["look"] = "again" })
	api.awaitDiscovered(t, "acme")
	before := len(r.extensions.calls())
	r.extensions.fail("again")
	api.register("acme", func(c *runtimev1.ExtensionConfig) { c.Annotations["look"] = "once more" })
	r.extensions.awaitCalls(t, before+2) // a success has started it over, too
}

func TestEndpointsOfAServiceMakeItDiscoverAgain(t *testing.T) {
	api := newAPIServer(t)
	put := func(service, address, annotation string) {
		slice := discoveryv1.EndpointSlice{
			TypeMeta:    metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}}},
		}
		slice.Namespace, slice.Name = "system", service+"-x"
		slice.Labels = map[string]string{discoveryv1.LabelServiceName: service}
		slice.Annotations = map[string]string{"endpoints.kubernetes.io/last-change-trigger-time": annotation}
		api.put("/apis/discovery.k8s.io/v1/namespaces/system/endpointslices/"+slice.Name, slice)
	}
	put("acme", "10.0.0.1", "")
	put("marker", "10.0.0.1", "")
	r := start(t, api, nil)
	for _, name := range []string{"acme", "marker"} {
		api.register(name, func(c *runtimev1.ExtensionConfig) {
			c.Spec.ClientConfig = runtimev1.ClientConfig{Service: runtimev1.ServiceReference{Namespace: "system", Name: name}}
		})
		api.awaitDiscovered(t, name)
	}
	api.register("other", nil)
	api.awaitDiscovered(t, "other")
	asked := len(r.extensions.calls())
	put("acme", "10.0.0.1", "now") // which changes no endpoint
	put("marker", "10.0.0.2", "")  // events of EndpointSlices come in order
	eventually(t, "a discovery", func() (string, bool) {
		more := len(r.extensions.calls()) - asked
		return strconv.Itoa(more), more >= 1
	})
	r.extensions.serve(named("a", ""), named("b", ""))
	put("acme", "10.0.0.2", "now")
	r.awaitServed(
		t,
		"a.acme https://acme.system.svc:443",
		"a.marker https://marker.system.svc:443",
		"a.other https://other.example.com",
		"b.acme https://acme.system.svc:443",
	)
	if calls := r.extensions.calls()[asked:]; len(calls) != 2 {
		t.Errorf("asked are %v, want each Service once", calls)
	}
}

// losing makes a Source one of several replicas that gives up its lease in some seconds if another takes it: later than
// a busy machine may keep it from renewing its lease, and sooner than the attempt to discover an extension ends.
func losing(c *controllers.Config) {
	elected(c)
	c.LeaderElection.RenewDeadline = limits.DiscoveryTimeout / 2
}

func TestLostLeadershipEndsTheAttempt(t *testing.T) {
	t.Parallel() // it waits for most of the time
	api := newAPIServer(t)
	began, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	r := start(t, api, losing)
	r.extensions.set(func(ctx context.Context, _ registry.ClientConfig) (extension.Discovered, error) {
		began <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return extension.Discovered{Handlers: []registry.Handler{named("a", "v1beta1")}}, nil
	})
	r.awaitLog(t, "this replica leads")
	api.register("acme", nil)
	<-began
	if !r.source.Leads() {
		t.Error("a replica that asks an extension does not say that it leads")
	}
	api.lease("other")
	<-ended
	r.awaitLog(t, "this replica no longer leads")
	if r.source.Leads() {
		t.Error("a replica that has lost its lease still says that it leads")
	}
	r.extensions.serve(named("b", ""))
	api.register("acme", func(c *runtimev1.ExtensionConfig) { c.Status = statusWith(1, "c.acme") })
	r.awaitServed(t, "c.acme https://acme.example.com") // it follows
	expectWrites(t, api, 0)
}

func TestLostLeadershipBetweenWritesWritesNoMore(t *testing.T) {
	t.Parallel() // it waits for most of the time
	api := newAPIServer(t)
	lost := make(chan struct{})
	r := start(t, api, losing)
	r.awaitLog(t, "this replica leads")
	api.before(func(method, path string) error {
		if method == http.MethodPatch && path == configs+"acme" {
			api.lease("other")
			<-lost
		}
		return nil
	})
	r.extensions.serve(named("a", "v1beta1"))
	api.register("acme", nil)
	r.awaitLog(t, "this replica no longer leads")
	close(lost)
	api.register("acme", func(c *runtimev1.ExtensionConfig) { c.Status = statusWith(1, "c.acme") })
	r.awaitServed(t, "c.acme https://acme.example.com")
	for _, w := range requests(api.written()) {
		if strings.Contains(w, "/status") {
			t.Errorf("it has written %s", w)
		}
	}
}

func TestDeletedIsForgotten(t *testing.T) {
	api := newAPIServer(t)
	r := start(t, api, nil)
	api.register("acme", nil)
	api.register("other", nil)
	r.awaitServed(t, "a.acme https://acme.example.com", "a.other https://other.example.com")
	api.remove(configs + "acme")
	r.awaitServed(t, "a.other https://other.example.com")
	now := metav1.Now()
	api.awaitDiscovered(t, "other")
	marked := len(api.written())
	api.register("other", func(c *runtimev1.ExtensionConfig) {
		c.DeletionTimestamp, c.Finalizers = &now, []string{"example.com/slow"}
	})
	r.awaitServed(t)
	// What is being deleted counts as deleted, also for one that starts.
	again := start(t, api, nil)
	if got := again.served(); len(got) > 0 {
		t.Errorf("served is %v", got)
	}
	api.register("third", nil)
	again.awaitServed(t, "a.third https://third.example.com")
	for _, w := range requests(api.written()[marked:]) {
		if !strings.Contains(w, "third") {
			t.Errorf("it has written %s", w)
		}
	}
}

func TestDeprecatedVersionsAreACondition(t *testing.T) {
	api := newAPIServer(t)
	r := start(t, api, func(c *controllers.Config) {
		c.Catalog, c.Resync = hookversions.New(), 50*time.Millisecond
	})
	implementing := func(version string) registry.Handler {
		h := named("a", "")
		h.Hook = hook.GroupVersionHook{Group: hookversions.Group, Version: version, Hook: hookversions.BeforeNodeDrain}
		return h
	}
	r.extensions.serve(implementing("v1alpha1"))
	api.register("acme", nil)
	const message = `handler "a" implements hooks.test.hookgate.dev/v1alpha1, which is deprecated since v0.4.0 of the gateway: it should implement hooks.test.hookgate.dev/v1`
	api.awaitCondition(t, "acme", "DeprecatedHookVersions", metav1.ConditionTrue, message)
	// A failure, and a pause, leave it as it is.
	r.extensions.fail("connection refused")
	api.awaitCondition(t, "acme", discovered, metav1.ConditionFalse, "connection refused; its last known handlers are still served: 1")
	api.awaitCondition(t, "acme", "DeprecatedHookVersions", metav1.ConditionTrue, message)
	r.extensions.serve(implementing("v1"))
	api.awaitNone(t, "acme", "DeprecatedHookVersions")
	eventually(t, "an event warned", func() (string, bool) {
		return fmt.Sprint(api.events()), slices.Contains(api.events(), "Warning Deprecated: "+message)
	})
}
