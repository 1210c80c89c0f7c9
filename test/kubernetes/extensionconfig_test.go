// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/registry"
)

const (
	discoveredCondition = runtimev1.ExtensionConfigDiscoveredCondition
	servedCondition     = "Served"
	pausedCondition     = clusterv1.PausedCondition
)

func TestDiscovery(t *testing.T) {
	r := start(t, nil)
	x := newExtension(t, "b", "a", "a-b")
	x.handlers[1].FailurePolicy = new(runtimehooksv1.FailurePolicyIgnore)
	x.handlers[1].TimeoutSeconds = new(int32(3))
	create(t, r.client, newConfig(t, "discovery", x))
	config := awaitCondition(t, r.client, "discovery", discoveredCondition, metav1.ConditionTrue, "")

	hook := runtimev1.GroupVersionHook{APIVersion: runtimehooksv1.GroupVersion.String(), Hook: "BeforeClusterCreate"}
	want := runtimev1.ExtensionConfigStatus{
		Handlers: []runtimev1.ExtensionHandler{
			{Name: "a-b.discovery", RequestHook: hook, TimeoutSeconds: 10, FailurePolicy: runtimev1.FailurePolicyFail},
			{Name: "a.discovery", RequestHook: hook, TimeoutSeconds: 3, FailurePolicy: runtimev1.FailurePolicyIgnore},
			{Name: "b.discovery", RequestHook: hook, TimeoutSeconds: 10, FailurePolicy: runtimev1.FailurePolicyFail},
		},
		Conditions: []metav1.Condition{
			{Type: pausedCondition, Status: metav1.ConditionFalse, Reason: clusterv1.NotPausedReason, ObservedGeneration: 1},
			{Type: discoveredCondition, Status: metav1.ConditionTrue, Reason: runtimev1.ExtensionConfigDiscoveredReason, ObservedGeneration: 1},
			{Type: "Served", Status: metav1.ConditionTrue, Reason: "REST", Message: "3", ObservedGeneration: 1},
		},
		Deprecated: &runtimev1.ExtensionConfigDeprecatedStatus{V1Beta1: &runtimev1.ExtensionConfigV1Beta1DeprecatedStatus{
			Conditions: clusterv1.Conditions{{Type: runtimev1.RuntimeExtensionDiscoveredV1Beta1Condition,
				Status: corev1.ConditionTrue}},
		}},
	}
	if diff := cmp.Diff(want, config.Status, cmpopts.IgnoreTypes(metav1.Time{})); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	r.serves(t, "a-b.discovery "+x.URL, "a.discovery "+x.URL, "b.discovery "+x.URL)
	awaitEvent(t, r, "discovery", "Discovered", "the extension has 3 handlers")

	t.Run("failure keeps the handlers", func(t *testing.T) {
		x.set(func(s *serverOf) { s.broken = true })
		update(t, r.client, "discovery", func(c *runtimev1.ExtensionConfig) { c.Spec.Settings = map[string]string{"k": "v"} })
		config := awaitCondition(t, r.client, "discovery", discoveredCondition, metav1.ConditionFalse, "500")
		if len(config.Status.Handlers) != 3 {
			t.Errorf("status has %d handlers, want the 3 last known", len(config.Status.Handlers))
		}
		old := config.Status.Deprecated.V1Beta1.Conditions
		if len(old) != 1 || old[0].Status != corev1.ConditionFalse ||
			old[0].Severity != clusterv1.ConditionSeverityError ||
			old[0].Reason != runtimev1.DiscoveryFailedV1Beta1Reason || old[0].Message == "" {
			t.Errorf("deprecated conditions are %+v", old)
		}
		r.serves(t, "a-b.discovery "+x.URL, "a.discovery "+x.URL, "b.discovery "+x.URL)
		if got := r.registry.Snapshot().All()[0].Registration.Settings["k"]; got != "v" {
			t.Errorf("settings are not served while the extension fails: k is %q", got)
		}
		awaitEvent(t, r, "discovery", "NotDiscovered", "500")
	})
	t.Run("it is tried until it succeeds", func(t *testing.T) {
		x.set(func(s *serverOf) { s.broken, s.handlers = false, s.handlers[:1] })
		awaitCondition(t, r.client, "discovery", discoveredCondition, metav1.ConditionTrue, "")
		r.serves(t, "b.discovery "+x.URL)
	})
	t.Run("deletion", func(t *testing.T) {
		if err := r.client.Delete(t.Context(), get(t, r.client, "discovery")); err != nil {
			t.Fatal(err)
		}
		r.serves(t)
	})
}

// awaitEvent waits for an event of an ExtensionConfig.
func awaitEvent(t *testing.T, r *replica, config, reason, part string) {
	t.Helper()
	awaitEventOf(t, r, "", config, reason, part)
}

// awaitEventOf waits for an event of the given type, or of any type if it is empty.
func awaitEventOf(t *testing.T, r *replica, kind, config, reason, part string) {
	t.Helper()
	eventually(t, "event "+reason+" with "+part, func() (string, bool) {
		var list eventsv1.EventList
		if err := r.client.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		var saw []string
		for i := range list.Items {
			e := &list.Items[i]
			if e.Regarding.Name == config {
				saw = append(saw, e.Type+" "+e.Reason+": "+e.Note)
				if e.Reason == reason && strings.Contains(e.Note, part) && (kind == "" || e.Type == kind) {
					return "", true
				}
			}
		}
		return strings.Join(saw, "; "), false
	})
}

func secret(name string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{StringData: data}
	s.Namespace, s.Name = metav1.NamespaceDefault, name
	return s
}

// neverDiscovered is the end of the message about an extension whose handlers were never known in a cluster.
const neverDiscovered = "; it was never discovered, so calls to all handlers of a hook are answered without it"

func TestMaximumOfHandlers(t *testing.T) {
	r := start(t, nil)
	var names []string
	for i := range 512 {
		names = append(names, fmt.Sprintf("handler-%03d", i))
	}
	x := newExtension(t, names...)
	create(t, r.client, newConfig(t, "handlers-512", x))
	config := awaitCondition(t, r.client, "handlers-512", discoveredCondition, metav1.ConditionTrue, "")
	if len(config.Status.Handlers) != 512 {
		t.Errorf("status has %d handlers, want 512", len(config.Status.Handlers))
	}
	more := newExtension(t, append(names, "one-more")...)
	create(t, r.client, newConfig(t, "handlers-513", more))
	awaitCondition(t, r.client, "handlers-513", discoveredCondition, metav1.ConditionFalse,
		"discover handlers: answer: has 513 handlers, which is more than 512: split them over several extensions"+neverDiscovered)
}

// holding is a Discoverer that blocks the calls to one extension until it is released.
type holding struct {
	discovery.Discoverer
	url      string
	held     atomic.Int64
	released chan struct{}
}

func (h *holding) Discover(ctx context.Context, c registry.ClientConfig) (extension.Discovered, error) {
	if c.URL == h.url {
		h.held.Add(1)
		<-h.released
	}
	return h.Discoverer.Discover(ctx, c)
}

// TestExtensionsThatHangDelayNeitherOthersNorReadiness: each extension has its own worker.
func TestExtensionsThatHangDelayNeitherOthersNorReadiness(t *testing.T) {
	const hanging = 30
	hangs, x := newExtension(t), newExtension(t, "a")
	hangs.set(func(s *serverOf) { s.broken = true }) // once it is released
	h := &holding{url: hangs.URL, released: make(chan struct{})}
	release := sync.OnceFunc(func() { close(h.released) })
	r := prepare(t, func(c *controllers.Config) { h.Discoverer, c.Discoverer = c.Discoverer, h })
	for i := range hanging {
		create(t, r.client, newConfig(t, fmt.Sprintf("a-hangs-%d", i), hangs))
	}
	r.run(t)
	t.Cleanup(release) // before the replica is stopped
	r.ready(t)
	eventually(t, "all that hang are asked", func() (string, bool) {
		n := h.held.Load()
		return strconv.FormatInt(n, 10), n == hanging
	})
	create(t, r.client, newConfig(t, "b-works", x))
	r.serves(t, "a.b-works "+x.URL)
	release()
	awaitCondition(t, r.client, "a-hangs-7", discoveredCondition, metav1.ConditionFalse, "500")
}

// TestUnchangedOutcomesAreNotWritten: repeated discoveries write nothing once the status reports their outcome.
func TestUnchangedOutcomesAreNotWritten(t *testing.T) {
	r := start(t, func(c *controllers.Config) { c.Resync = 20 * time.Millisecond })
	good, odd, broken := newExtension(t, "b", "a"), newExtension(t, "a"), newExtension(t)
	odd.handlers = append(odd.handlers, handler("new", "BeforeMoonLanding"))
	broken.set(func(s *serverOf) { s.broken = true })
	create(t, r.client, secret("unchanged", map[string]string{"ca.crt": string(good.ca())}))

	configs := []*runtimev1.ExtensionConfig{
		newConfig(t, "unchanged-good", good), newConfig(t, "unchanged-odd", odd), newConfig(t, "unchanged-twin", odd),
		newConfig(t, "unchanged-broken", broken), newConfig(t, "unchanged-paused", good),
		newConfig(t, "unchanged-no-secret", good),
		newConfig(t, "unchanged-refused", nil),
	}
	configs[0].Annotations = map[string]string{runtimev1.InjectCAFromSecretAnnotation: "default/unchanged"}
	configs[4].Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	configs[5].Annotations = map[string]string{runtimev1.InjectCAFromSecretAnnotation: "default/unchanged-missing"}
	configs[6].Spec.ClientConfig.URL = "https://127.0.0.1:1"
	for _, c := range configs {
		create(t, r.client, c)
	}
	awaitCondition(t, r.client, "unchanged-good", discoveredCondition, metav1.ConditionTrue, "")
	awaitCondition(t, r.client, "unchanged-odd", discoveredCondition, metav1.ConditionTrue, "unchanged-twin")
	awaitCondition(t, r.client, "unchanged-twin", discoveredCondition, metav1.ConditionTrue, "unchanged-odd")
	awaitCondition(t, r.client, "unchanged-broken", discoveredCondition, metav1.ConditionFalse, "")
	awaitCondition(t, r.client, "unchanged-refused", discoveredCondition, metav1.ConditionFalse, "")
	awaitCondition(t, r.client, "unchanged-no-secret", discoveredCondition, metav1.ConditionFalse, "")
	awaitCondition(t, r.client, "unchanged-paused", pausedCondition, metav1.ConditionTrue, "")
	rounds := func(n int64) {
		before := []int64{good.discovery.Load(), odd.discovery.Load(), broken.discovery.Load()}
		eventually(t, fmt.Sprintf("%d more rounds", n), func() (string, bool) {
			now := []int64{good.discovery.Load() - before[0], odd.discovery.Load() - before[1],
				broken.discovery.Load() - before[2]}
			return fmt.Sprint(now), slices.Min(now) >= n
		})
	}
	// What the extensions have in common may be written a little later than the conditions above.
	eventually(t, "nothing is written in five rounds", func() (string, bool) {
		before := len(r.writes.all())
		rounds(5)
		more := r.writes.since(before)
		return fmt.Sprint(more), len(more) == 0
	})
	versions := map[string]string{}
	for _, c := range configs {
		versions[c.Name] = get(t, r.client, c.Name).ResourceVersion
	}
	marked := len(r.writes.all())
	rounds(20)
	if more := r.writes.since(marked); len(more) > 0 {
		t.Errorf("written in 20 rounds without a change: %s", more)
	}
	for _, c := range configs {
		if now := get(t, r.client, c.Name).ResourceVersion; now != versions[c.Name] {
			t.Errorf("%s: resourceVersion went from %s to %s", c.Name, versions[c.Name], now)
		}
	}
	r.stop()

	again := start(t, func(c *controllers.Config) { c.Resync = 20 * time.Millisecond })
	again.ready(t)
	rounds(5)
	if all := again.writes.all(); len(all) != 0 {
		t.Errorf("written after a restart: %s", all)
	}
}

func TestWatchFilter(t *testing.T) {
	r := start(t, nil)
	x := newExtension(t, "a")
	create(t, r.client, newConfig(t, "filtered", x))
	r.serves(t, "a.filtered "+x.URL)
	update(t, r.client, "filtered", func(c *runtimev1.ExtensionConfig) { c.Labels = nil })
	r.serves(t)
}

func TestNamespaceLabels(t *testing.T) {
	_, c := connect(t)
	namespace := &corev1.Namespace{}
	namespace.Name, namespace.Labels = "labelled-"+strconv.FormatInt(time.Now().UnixNano(), 36),
		map[string]string{"team": "blue"}
	create(t, c, namespace)
	r := start(t, nil)
	r.ready(t)
	got, known := r.NamespaceLabels(namespace.Name)
	if diff := cmp.Diff(map[string]string{"team": "blue", corev1.LabelMetadataName: namespace.Name}, got); diff != "" || !known {
		t.Errorf("labels when ready, known %v (-want +got):\n%s", known, diff)
	}
	got, known = r.NamespaceLabels("unheard-of")
	if diff := cmp.Diff(map[string]string{corev1.LabelMetadataName: "unheard-of"}, got); diff != "" || known {
		t.Errorf("labels of an unknown namespace, known %v (-want +got):\n%s", known, diff)
	}
	if err := c.Get(context.Background(), clientKey(namespace), namespace); err != nil {
		t.Fatal(err)
	}
	namespace.Labels["team"] = "green"
	if err := c.Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	eventually(t, "labels follow the namespace", func() (string, bool) {
		got, _ := r.NamespaceLabels(namespace.Name)
		return got["team"], got["team"] == "green"
	})
}
