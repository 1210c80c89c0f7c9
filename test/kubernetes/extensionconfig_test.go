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
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/internal/discovery"
	"github.com/hookgate/hookgate/internal/extension"
	"github.com/hookgate/hookgate/internal/extensionconfig"
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

func TestCABundleFollowsSecret(t *testing.T) {
	r := start(t, nil)
	x := newExtension(t, "a")
	s := secret("follows", map[string]string{"ca.crt": string(x.ca())})
	create(t, r.client, s)
	config := newConfig(t, "ca-follows", x)
	config.Spec.ClientConfig.CABundle = nil
	config.Annotations = map[string]string{runtimev1.InjectCAFromSecretAnnotation: "default/follows"}
	create(t, r.client, config)
	got := awaitCondition(t, r.client, "ca-follows", discoveredCondition, metav1.ConditionTrue, "")
	if string(got.Spec.ClientConfig.CABundle) != string(x.ca()) {
		t.Error("caBundle is not ca.crt of the Secret")
	}
	r.serves(t, "a.ca-follows "+x.URL)

	ca := x.renew(t)
	s.StringData = map[string]string{"ca.crt": string(ca)}
	if err := r.client.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	eventually(t, "caBundle follows the Secret", func() (string, bool) {
		got := get(t, r.client, "ca-follows").Spec.ClientConfig.CABundle
		return string(got), string(got) == string(ca)
	})
	awaitCondition(t, r.client, "ca-follows", discoveredCondition, metav1.ConditionTrue, "")
	eventually(t, "the new CA is used", func() (string, bool) {
		got := r.registry.Snapshot().All()[0].Registration.ClientConfig.CABundle
		return string(got), string(got) == string(ca)
	})
	awaitEvent(t, r, "ca-follows", "CABundleInjected", "caBundle")
}

func TestSecretsThatCannotBeUsed(t *testing.T) {
	cases := map[string]struct {
		reason    string
		secret    map[string]string // nil for none
		reference string
		want      string
	}{
		"missing": {
			reason:    "the Secret may come later",
			reference: "default/unusable-missing",
			want:      "annotation runtime.cluster.x-k8s.io/inject-ca-from-secret: Secret default/unusable-missing does not exist; create it, or take the annotation away",
		},
		"empty": {
			reason:    "cert-manager writes ca.crt only where it knows the CA",
			secret:    map[string]string{"tls.crt": "x"},
			reference: "default/unusable-empty",
			want:      "annotation runtime.cluster.x-k8s.io/inject-ca-from-secret: Secret default/unusable-empty has no ca.crt; put the CA of the extension's certificate there",
		},
		"garbage": {
			reason:    "the API server would take it, and every connection would fail",
			secret:    map[string]string{"ca.crt": "not PEM"},
			reference: "default/unusable-garbage",
			want:      "annotation runtime.cluster.x-k8s.io/inject-ca-from-secret: Secret default/unusable-garbage: ca.crt has no certificate in PEM",
		},
		"form": {
			reason:    "ExtensionConfigs have no namespace to default to",
			reference: "unusable",
			want:      `annotation runtime.cluster.x-k8s.io/inject-ca-from-secret: "unusable" is not of the form <namespace>/<name>`,
		},
		"namespace": {
			reason:    "--namespace limits what may be read",
			reference: "kube-system/unusable",
			want:      "annotation runtime.cluster.x-k8s.io/inject-ca-from-secret: Secret kube-system/unusable is not in namespace default, the only one that this gateway may read (--namespace)",
		},
	}
	r := start(t, func(c *controllers.Config) { c.Namespace = metav1.NamespaceDefault })
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			x := newExtension(t, "a")
			if tc.secret != nil {
				create(t, r.client, secret("unusable-"+name, tc.secret))
			}
			config := newConfig(t, "unusable-"+name, x)
			config.Labels[clusterv1.WatchLabel] = "testsecretsthatcannotbeused"
			config.Annotations = map[string]string{runtimev1.InjectCAFromSecretAnnotation: tc.reference}
			create(t, r.client, config)
			awaitMessage(t, r.client, config.Name, metav1.ConditionFalse, tc.want)
			if n := x.discovery.Load(); n != 0 {
				t.Errorf("%s: the extension was asked %d times", tc.reason, n)
			}
		})
	}
	t.Run("repaired", func(t *testing.T) {
		x := newExtension(t, "a")
		config := newConfig(t, "unusable-repaired", x)
		config.Labels[clusterv1.WatchLabel] = "testsecretsthatcannotbeused"
		config.Annotations = map[string]string{runtimev1.InjectCAFromSecretAnnotation: "default/unusable-repaired"}
		create(t, r.client, config)
		awaitCondition(t, r.client, config.Name, discoveredCondition, metav1.ConditionFalse, "does not exist")
		create(t, r.client, secret("unusable-repaired", map[string]string{"ca.crt": string(x.ca())}))
		awaitCondition(t, r.client, config.Name, discoveredCondition, metav1.ConditionTrue, "")
	})
}

func TestConfigsThatAreWrong(t *testing.T) {
	good := newExtension(t, "a")
	cases := map[string]struct {
		reason string
		change func(*runtimev1.ExtensionConfig)
		want   string
	}{
		"selector": {
			reason: "the schema does not check selectors",
			change: func(c *runtimev1.ExtensionConfig) {
				c.Spec.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a b", Operator: "Sometimes"}}}
			},
			want: "spec.namespaceSelector.matchExpressions[0].operator: Invalid value: \"Sometimes\": not a valid selector operator",
		},
		"self": {
			reason: "the gateway would call itself without end",
			change: func(c *runtimev1.ExtensionConfig) {
				c.Spec.ClientConfig = runtimev1.ClientConfig{Service: runtimev1.ServiceReference{Namespace: "gateway-system", Name: "gateway", Port: new(int32(8443))}}
			},
			want: "spec.clientConfig: https://gateway.gateway-system.svc:8443 is this gateway, which would call itself without end; name the extension itself",
		},
		"self by another name": {
			reason: "the same host has longer names",
			change: func(c *runtimev1.ExtensionConfig) {
				c.Spec.ClientConfig.URL = "https://Gateway.gateway-system.svc.cluster.local./prefix"
			},
			want: "is this gateway",
		},
		"both": {
			reason: "the schema admits url together with service",
			change: func(c *runtimev1.ExtensionConfig) {
				c.Spec.ClientConfig.Service = runtimev1.ServiceReference{Namespace: "a", Name: "b"}
			},
			want: "spec.clientConfig: Forbidden: must have url or service, not both",
		},
		"caBundle": {
			reason: "a caBundle without a certificate lets no connection succeed",
			change: func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.CABundle = []byte("x") },
			want:   "spec.clientConfig.caBundle",
		},
	}
	r := start(t, func(c *controllers.Config) { c.Own = ownAddresses(t, "gateway.gateway-system.svc") })
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			config := newConfig(t, "wrong-"+strings.ReplaceAll(name, " ", "-"), good)
			config.Name = strings.ToLower(config.Name)
			config.Labels[clusterv1.WatchLabel] = "testconfigsthatarewrong"
			tc.change(config)
			create(t, r.client, config)
			awaitCondition(t, r.client, config.Name, discoveredCondition, metav1.ConditionFalse, tc.want)
			if served := r.served(); len(served) != 0 {
				t.Errorf("%s: served is %s", tc.reason, served)
			}
		})
	}
	t.Run("what was served stays", func(t *testing.T) {
		config := newConfig(t, "wrong-later", good)
		config.Labels[clusterv1.WatchLabel] = "testconfigsthatarewrong"
		create(t, r.client, config)
		r.serves(t, "a.wrong-later "+good.URL)
		update(t, r.client, "wrong-later", cases["self"].change)
		awaitCondition(t, r.client, "wrong-later", discoveredCondition, metav1.ConditionFalse, "is this gateway")
		r.serves(t, "a.wrong-later "+good.URL)
	})
}

func TestUnknownHooksAreLeftOut(t *testing.T) {
	r := start(t, nil)
	x := newExtension(t, "a")
	x.handlers = append(x.handlers, handler("new", "BeforeMoonLanding"))
	create(t, r.client, newConfig(t, "unknown-hook", x))
	config := awaitMessage(t, r.client, "unknown-hook", metav1.ConditionTrue,
		`handler "new" is left out: hook "hooks.runtime.cluster.x-k8s.io/v1alpha1/BeforeMoonLanding" is not known to this gateway`)
	if len(config.Status.Handlers) != 1 {
		t.Errorf("status.handlers is %v, want one", config.Status.Handlers)
	}
	r.serves(t, "a.unknown-hook "+x.URL)
}

func TestTwoConfigsWithOneURL(t *testing.T) {
	r := start(t, func(c *controllers.Config) { c.Resync = 100 * time.Millisecond })
	x := newExtension(t, "a")
	create(t, r.client, newConfig(t, "same-url-1", x))
	second := newConfig(t, "same-url-2", x)
	const shared = ": its handlers are called once for each registration; delete those that are not wanted"
	create(t, r.client, second)
	awaitMessage(t, r.client, "same-url-1", metav1.ConditionTrue,
		"the same URL is registered by ExtensionConfig same-url-2, too"+shared)
	awaitMessage(t, r.client, "same-url-2", metav1.ConditionTrue,
		"the same URL is registered by ExtensionConfig same-url-1, too"+shared)
	r.serves(t, "a.same-url-1 "+x.URL, "a.same-url-2 "+x.URL)
	if err := r.client.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the remark goes when the other does", func() (string, bool) {
		config := get(t, r.client, "same-url-1")
		for _, c := range config.Status.Conditions {
			if c.Message != "" && c.Type != servedCondition {
				return c.Message, false
			}
		}
		return "", true
	})
}

// neverDiscovered is the end of the message about an extension whose handlers were never known in a cluster.
const neverDiscovered = "; it was never discovered, so that calls to all handlers of a hook are answered without it"

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
	awaitMessage(t, r.client, "handlers-513", metav1.ConditionFalse,
		"discover handlers: answer: has 513 handlers, which is more than 512: split them over several extensions"+neverDiscovered)
}

func TestPaused(t *testing.T) {
	r := start(t, nil)
	x := newExtension(t, "a")
	config := newConfig(t, "paused", x)
	config.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	create(t, r.client, config)
	got := awaitCondition(t, r.client, "paused", pausedCondition, metav1.ConditionTrue,
		"annotation cluster.x-k8s.io/paused is set")
	if len(got.Status.Conditions) != 1 || got.Status.Conditions[0].Reason != clusterv1.PausedReason {
		t.Errorf("conditions are %v, want Paused alone", got.Status.Conditions)
	}
	if n := x.discovery.Load(); n != 0 {
		t.Errorf("the extension of a paused ExtensionConfig was asked %d times", n)
	}
	update(t, r.client, "paused", func(c *runtimev1.ExtensionConfig) { delete(c.Annotations, clusterv1.PausedAnnotation) })
	awaitCondition(t, r.client, "paused", discoveredCondition, metav1.ConditionTrue, "")
	awaitCondition(t, r.client, "paused", pausedCondition, metav1.ConditionFalse, "")
	r.serves(t, "a.paused "+x.URL)

	update(t, r.client, "paused", func(c *runtimev1.ExtensionConfig) {
		c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		c.Spec.ClientConfig.URL = "https://127.0.0.1:1"
	})
	awaitCondition(t, r.client, "paused", pausedCondition, metav1.ConditionTrue, "")
	r.serves(t, "a.paused "+x.URL)
	if err := r.client.Delete(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	r.serves(t)
}

// TestDiscoveryIsRepeated: an extension upgraded behind the same URL is discovered again.
func TestDiscoveryIsRepeated(t *testing.T) {
	t.Run("resync", func(t *testing.T) {
		r := start(t, func(c *controllers.Config) { c.Resync = 50 * time.Millisecond })
		x := newExtension(t, "a")
		create(t, r.client, newConfig(t, "again-resync", x))
		r.serves(t, "a.again-resync "+x.URL)
		x.set(func(s *serverOf) { s.handlers = append(s.handlers, handler("b", "BeforeClusterCreate")) })
		r.serves(t, "a.again-resync "+x.URL, "b.again-resync "+x.URL)
		eventually(t, "status has both handlers", func() (string, bool) {
			n := len(get(t, r.client, "again-resync").Status.Handlers)
			return strconv.Itoa(n), n == 2
		})
	})
	t.Run("endpoints", func(t *testing.T) {
		r := start(t, nil)
		x := newExtension(t, "a")
		slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
		slice.Namespace, slice.Name = metav1.NamespaceDefault, "extension-abcde"
		slice.Labels = map[string]string{discoveryv1.LabelServiceName: "extension"}
		slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}}
		create(t, r.client, slice)
		config := newConfig(t, "again-endpoints", x)
		config.Spec.ClientConfig.URL = ""
		config.Spec.ClientConfig.Service = runtimev1.ServiceReference{Namespace: "default", Name: "extension",
			Port: new(x.port(t))}
		create(t, r.client, config)
		url := fmt.Sprintf("https://extension.default.svc:%d", x.port(t))
		r.serves(t, "a.again-endpoints "+url)
		awaitCondition(t, r.client, "again-endpoints", discoveredCondition, metav1.ConditionTrue, "")

		x.set(func(s *serverOf) { s.handlers = append(s.handlers, handler("b", "BeforeClusterCreate")) })
		slice.Endpoints[0].Addresses = []string{"10.0.0.2"}
		if err := r.client.Update(t.Context(), slice); err != nil {
			t.Fatal(err)
		}
		r.serves(t, "a.again-endpoints "+url, "b.again-endpoints "+url)
	})
}

// TestEndpointsOfAService: the known addresses of a Service follow its EndpointSlices.
func TestEndpointsOfAService(t *testing.T) {
	endpoints := controllers.NewEndpoints()
	r := start(t, func(c *controllers.Config) { c.Endpoints = endpoints })
	r.ready(t)
	knows := func(want string) {
		t.Helper()
		eventually(t, "the endpoints are "+want, func() (string, bool) {
			got, _ := endpoints.Of("acme.default.svc")
			return fmt.Sprint(got), fmt.Sprint(got) == want
		})
	}
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	slice.Namespace, slice.Name = metav1.NamespaceDefault, "acme-abcde"
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: "acme"}
	slice.Ports = []discoveryv1.EndpointPort{{Name: new("metrics"), Port: new(int32(8080))},
		{Name: new("grpc"), Port: new(int32(9443))}}
	slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.2"}}, {Addresses: []string{"10.0.0.1"}}}
	create(t, r.client, slice)
	knows("[10.0.0.1:9443 10.0.0.2:9443]")
	slice.Endpoints[0].Conditions.Ready = new(false)
	if err := r.client.Update(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	knows("[10.0.0.1:9443]")
	if err := r.client.Delete(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	knows("[]")
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

func TestLastKnownHandlersAreServedAtTheStart(t *testing.T) {
	first := start(t, nil)
	x := newExtension(t, "a")
	create(t, first.client, newConfig(t, "last-known", x))
	awaitCondition(t, first.client, "last-known", discoveredCondition, metav1.ConditionTrue, "")
	first.stop()
	x.set(func(s *serverOf) { s.hangs = true })

	second := start(t, nil)
	second.ready(t)
	if got, want := second.served(), []string{"a.last-known " + x.URL}; !slices.Equal(got, want) {
		t.Errorf("served when ready is %s, want %s", got, want)
	}
	if c := get(t, first.client, "last-known"); len(c.Status.Handlers) != 1 {
		t.Errorf("status.handlers is %v, want the last known one", c.Status.Handlers)
	}
}

func TestReadOnly(t *testing.T) {
	writer := start(t, func(c *controllers.Config) { c.Resync = 50 * time.Millisecond })
	reader := start(t, func(c *controllers.Config) { c.ReadOnly, c.Own = true, ownAddresses(t, "gateway.gateway-system.svc") })
	x := newExtension(t, "a")
	create(t, writer.client, newConfig(t, "read-only", x))
	reader.serves(t, "a.read-only "+x.URL)
	x.set(func(s *serverOf) { s.handlers = append(s.handlers, handler("b", "BeforeClusterCreate")) })
	reader.serves(t, "a.read-only "+x.URL, "b.read-only "+x.URL)

	// Besides core's, the gateway's own registration is in the group that it reads.
	own := newConfig(t, "read-only-own", x)
	own.Spec.ClientConfig = runtimev1.ClientConfig{Service: runtimev1.ServiceReference{Namespace: "gateway-system",
		Name: "gateway"}}
	create(t, writer.client, own)
	awaitCondition(t, writer.client, "read-only-own", discoveredCondition, metav1.ConditionFalse, "")
	if err := writer.client.Delete(t.Context(), get(t, writer.client, "read-only")); err != nil {
		t.Fatal(err)
	}
	reader.serves(t)
	if all := reader.writes.all(); len(all) != 0 {
		t.Errorf("a replica that only reads has written: %s", all)
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

func ownAddresses(t testing.TB, list ...string) extensionconfig.Addresses {
	t.Helper()
	own, err := extensionconfig.ParseAddresses(list)
	if err != nil {
		t.Fatal(err)
	}
	return own
}
