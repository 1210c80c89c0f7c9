// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionconfig

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/certificates"
)

const urlA = "https://a.example.com"

// configWith returns an ExtensionConfig that is valid but for the change.
func configWith(change func(*runtimev1.ExtensionConfig)) *runtimev1.ExtensionConfig {
	c := &runtimev1.ExtensionConfig{}
	c.Name, c.Spec.ClientConfig.URL = "acme", urlA
	change(c)
	return c
}

// pad returns s with as many letters as make it n bytes long.
func pad(s string, n int) string { return s + strings.Repeat("a", n-len(s)) }

// caOf returns a CA bundle of n bytes.
func caOf(t *testing.T, n int) []byte {
	t.Helper()
	pair := certificates.New(t)
	return append(pair.CAPEM, strings.Repeat("\n", n-len(pair.CAPEM))...)
}

func TestConvertAtTheLimits(t *testing.T) {
	service := func(change func(*runtimev1.ServiceReference)) func(*runtimev1.ExtensionConfig) {
		return func(c *runtimev1.ExtensionConfig) {
			c.Spec.ClientConfig = runtimev1.ClientConfig{Service: runtimev1.ServiceReference{Name: "s", Namespace: "n"}}
			change(&c.Spec.ClientConfig.Service)
		}
	}
	port := func(p int32) func(*runtimev1.ExtensionConfig) {
		return service(func(s *runtimev1.ServiceReference) { s.Port = &p })
	}
	path := func(p string) func(*runtimev1.ExtensionConfig) {
		return service(func(s *runtimev1.ServiceReference) { s.Path = p })
	}
	ca := func(n int) func(*runtimev1.ExtensionConfig) {
		return func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.CABundle = caOf(t, n) }
	}
	for name, tc := range map[string]struct {
		change func(*runtimev1.ExtensionConfig)
		want   string // the error; empty for none
	}{
		"Name63":           {func(c *runtimev1.ExtensionConfig) { c.Name = pad("", 63) }, ""},
		"Name64":           {func(c *runtimev1.ExtensionConfig) { c.Name = pad("", 64) }, "must have at most 63 characters, has 64"},
		"NoName":           {func(c *runtimev1.ExtensionConfig) { c.Name = "" }, "metadata.name: Required value: must be a DNS-1123 label"},
		"URL512":           {func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.URL = pad(urlA+"/", 512) }, ""},
		"URL513":           {func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.URL = pad(urlA+"/", 513) }, "spec.clientConfig.url: Too long: may not be more than 512 bytes"},
		"URLSecret":        {func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.URL = "http://u:secret@a" }, `spec.clientConfig.url: Invalid value: "http://u:xxxxx@a": must begin with https://, not with "http"`},
		"CABundle51200":    {ca(38400), ""}, // as base64
		"CABundle51204":    {ca(38401), "spec.clientConfig.caBundle: Too long: may not be more than 51200 bytes"},
		"CABundleGarbage":  {func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.CABundle = []byte("x") }, "spec.clientConfig.caBundle: Invalid value: must be base64 of at least one certificate in PEM"},
		"NoClient":         {func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.URL = "" }, "spec.clientConfig: Required value: must have url or service"},
		"TwoClients":       {func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.Service.Name = "s" }, "spec.clientConfig: Forbidden: must have url or service, not both"},
		"Port1":            {port(1), ""},
		"Port65535":        {port(65535), ""},
		"Port0":            {port(0), "spec.clientConfig.service.port: Invalid value: 0: must be between 1 and 65535, inclusive"},
		"Port65536":        {port(65536), "spec.clientConfig.service.port: Invalid value: 65536: must be between 1 and 65535, inclusive"},
		"Path512":          {path(pad("/", 512)), ""},
		"Path513":          {path(pad("/", 513)), "spec.clientConfig.service.path: Too long: may not be more than 512 bytes"},
		"PathRelative":     {path("x"), `spec.clientConfig.service.path: Invalid value: "x": must begin with /`},
		"PathBroken":       {path("/%zz"), `spec.clientConfig.service.path: Invalid value: "/%zz": must be the path of a URL, for example /hooks`},
		"ServiceName":      {service(func(s *runtimev1.ServiceReference) { s.Name = "1s" }), `spec.clientConfig.service.name: Invalid value: "1s": a DNS-1035 label`},
		"NoServiceName":    {service(func(s *runtimev1.ServiceReference) { s.Name = "" }), "spec.clientConfig.service.name: Required value: must be the name of a Service"},
		"NoNamespace":      {service(func(s *runtimev1.ServiceReference) { s.Namespace = "" }), "spec.clientConfig.service.namespace: Required value: must be the namespace of the Service"},
		"ServiceNamespace": {service(func(s *runtimev1.ServiceReference) { s.Namespace = "a.b" }), `spec.clientConfig.service.namespace: Invalid value: "a.b": must not contain dots`},
		"Selector": {func(c *runtimev1.ExtensionConfig) {
			c.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
		}, `spec.namespaceSelector.matchLabels: Invalid value: "a b": `},
	} {
		t.Run(name, func(t *testing.T) {
			config := configWith(tc.change)
			before := config.DeepCopy()
			got, errs := Convert(config)
			if tc.want == "" && got.ClientConfig.Owner != config.Name {
				t.Errorf("the connections are those of %q, want %q", got.ClientConfig.Owner, config.Name)
			}
			if tc.want == "" && len(errs) > 0 || tc.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), tc.want)) {
				t.Errorf("got %v, want %q", errs, tc.want)
			}
			if diff := cmp.Diff(before, config); diff != "" {
				t.Errorf("Convert changed its argument (-before +after):\n%s", diff)
			}
		})
	}
}

func TestConvertDefaults(t *testing.T) {
	port := int32(8443)
	for name, tc := range map[string]struct {
		change    func(*runtimev1.ExtensionConfig)
		url       string
		inCluster bool
		selector  string
		paused    bool
	}{
		"URL": {func(*runtimev1.ExtensionConfig) {}, urlA, false, "", false},
		"Service": {func(c *runtimev1.ExtensionConfig) {
			c.Spec.ClientConfig = runtimev1.ClientConfig{Service: runtimev1.ServiceReference{Name: "s", Namespace: "n"}}
		}, "https://s.n.svc:443", true, "", false},
		"ServicePath": {func(c *runtimev1.ExtensionConfig) {
			c.Spec.ClientConfig = runtimev1.ClientConfig{Service: runtimev1.ServiceReference{Name: "s", Namespace: "n", Port: &port, Path: "/h"}}
		}, "https://s.n.svc:8443/h", true, "", false},
		"EmptySelector": {func(c *runtimev1.ExtensionConfig) { c.Spec.NamespaceSelector = &metav1.LabelSelector{} }, urlA, false, "", false},
		"Selector": {func(c *runtimev1.ExtensionConfig) {
			c.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}, urlA, false, "a=b", false},
		"Paused": {func(c *runtimev1.ExtensionConfig) {
			c.Annotations = map[string]string{clusterv1.PausedAnnotation: "false"}
		}, urlA, false, "", true},
	} {
		x, errs := Convert(configWith(tc.change))
		selector := ""
		if x.NamespaceSelector != nil {
			selector = x.NamespaceSelector.String()
		}
		if len(errs) > 0 || x.ClientConfig.URL != tc.url || x.ClientConfig.InCluster != tc.inCluster || selector != tc.selector || x.Paused != tc.paused {
			t.Errorf("%s: got %+v, %v", name, x, errs)
		}
		if !tc.paused && tc.selector == "" && x.NamespaceSelector != nil {
			t.Errorf("%s: a selector of all namespaces must be nil, which costs no look-up", name)
		}
	}
}

func status(name string, change ...func(*runtimev1.ExtensionHandler)) runtimev1.ExtensionHandler {
	h := runtimev1.ExtensionHandler{Name: name, RequestHook: runtimev1.GroupVersionHook{
		APIVersion: hook.Group + "/" + hook.Version, Hook: "BeforeClusterCreate",
	}}
	for _, f := range change {
		f(&h)
	}
	return h
}

func TestLastKnownHandlersAtTheLimits(t *testing.T) {
	seconds := func(n int32) func(*runtimev1.ExtensionHandler) {
		return func(h *runtimev1.ExtensionHandler) { h.TimeoutSeconds = n }
	}
	for name, tc := range map[string]struct {
		handler runtimev1.ExtensionHandler
		timeout time.Duration
		policy  hook.FailurePolicy
		want    string // the error; empty for none
	}{
		"Default":      {status("v.acme"), 10 * time.Second, hook.Fail, ""},
		"Timeout1":     {status("v.acme", seconds(1)), time.Second, hook.Fail, ""},
		"Timeout30":    {status("v.acme", seconds(30)), 30 * time.Second, hook.Fail, ""},
		"Timeout31":    {status("v.acme", seconds(31)), 0, "", "status.handlers[0].timeoutSeconds: Invalid value: 31: must be between 0 and 30"},
		"TimeoutMinus": {status("v.acme", seconds(-1)), 0, "", "status.handlers[0].timeoutSeconds: Invalid value: -1: must be between 0 and 30"},
		"Ignore":       {status("v.acme", func(h *runtimev1.ExtensionHandler) { h.FailurePolicy = runtimev1.FailurePolicyIgnore }), 10 * time.Second, hook.Ignore, ""},
		"Maybe":        {status("v.acme", func(h *runtimev1.ExtensionHandler) { h.FailurePolicy = "Maybe" }), 0, "", `status.handlers[0].failurePolicy: Unsupported value: "Maybe": supported values: "Fail", "Ignore"`},
		"Name63":       {status(pad("", 63) + ".acme"), 10 * time.Second, hook.Fail, ""},
		"Name64":       {status(pad("", 64) + ".acme"), 0, "", "must have at most 63 characters, has 64"},
		"OtherConfig":  {status("v.other"), 0, "", `status.handlers[0].name: Invalid value: "v.other": must end with .acme`},
		"Hook":         {status("v.acme", func(h *runtimev1.ExtensionHandler) { h.RequestHook.APIVersion = "v1/v1/v1" }), 0, "", `status.handlers[0].requestHook: Invalid value: "BeforeClusterCreate": `},
	} {
		t.Run(name, func(t *testing.T) {
			config := configWith(func(c *runtimev1.ExtensionConfig) { c.Status.Handlers = []runtimev1.ExtensionHandler{tc.handler} })
			before := config.DeepCopy()
			handlers, skipped, errs := LastKnownHandlers(config, catalog.New())
			if diff := cmp.Diff(before, config); diff != "" {
				t.Errorf("LastKnownHandlers changed its argument (-before +after):\n%s", diff)
			}
			if tc.want != "" {
				if len(errs) != 1 || !strings.Contains(errs[0].Error(), tc.want) || handlers != nil {
					t.Errorf("got %v, %v, want %q", handlers, errs, tc.want)
				}
				return
			}
			if len(errs) > 0 || len(skipped) > 0 || len(handlers) != 1 || handlers[0].Timeout != tc.timeout || handlers[0].FailurePolicy != tc.policy {
				t.Errorf("got %+v, %v, %v", handlers, skipped, errs)
			}
		})
	}
}

func TestLastKnownHandlersOfMany(t *testing.T) {
	config := configWith(func(c *runtimev1.ExtensionConfig) {
		for i := range limits.Handlers {
			c.Status.Handlers = append(c.Status.Handlers, status(fmt.Sprintf("h%03d.acme", limits.Handlers-i)))
		}
	})
	handlers, _, errs := LastKnownHandlers(config, catalog.New())
	if len(errs) > 0 || len(handlers) != 512 || !slices.IsSortedFunc(handlers, func(a, b registry.Handler) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("512 handlers: %d, %v", len(handlers), errs)
	}
	config.Status.Handlers = append(config.Status.Handlers, status("more.acme"))
	if handlers, _, errs := LastKnownHandlers(config, catalog.New()); len(errs) != 1 || handlers != nil || errs[0].Error() != "status.handlers: Too many: 513: must have at most 512 items" {
		t.Errorf("513 handlers: %d, %v", len(handlers), errs)
	}
}

func TestLastKnownHandlersLeavesOutHooksWithoutHandlers(t *testing.T) {
	config := configWith(func(c *runtimev1.ExtensionConfig) {
		of := func(name string) func(*runtimev1.ExtensionHandler) {
			return func(h *runtimev1.ExtensionHandler) { h.RequestHook.Hook = name }
		}
		c.Status.Handlers = []runtimev1.ExtensionHandler{status("d.acme", of("Discovery")), status("n.acme", of("New")), status("v.acme")}
	})
	handlers, skipped, errs := LastKnownHandlers(config, catalog.New())
	if len(errs) > 0 || len(handlers) != 1 || handlers[0].Name != "v" {
		t.Errorf("handlers %v, %v", handlers, errs)
	}
	if len(skipped) != 2 || skipped[0].Name != "d.acme" || skipped[1].Name != "n.acme" ||
		skipped[1].Reason != "there is no hook hooks.runtime.cluster.x-k8s.io/v1alpha1/New that can have handlers" {
		t.Errorf("left out are %v", skipped)
	}
	config.Status.Handlers = append(config.Status.Handlers, status("v.acme"), status("V.acme"))
	if _, _, errs := LastKnownHandlers(config, catalog.New()); len(errs) != 2 || errs[0].Error() != `status.handlers[3].name: Duplicate value: "v.acme"` {
		t.Errorf("each mistake is an error: %v", errs)
	}
}

func TestExtensionEqual(t *testing.T) {
	convert := func(change func(*runtimev1.ExtensionConfig)) Extension {
		x, errs := Convert(configWith(change))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return x
	}
	base := func() Extension { return convert(func(*runtimev1.ExtensionConfig) {}) }
	x, same := base(), base()
	if !x.Equal(&same) {
		t.Error("the same ExtensionConfig gives another Extension")
	}
	selected := convert(func(c *runtimev1.ExtensionConfig) {
		c.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	})
	for name, change := range map[string]func(*Extension){
		"Name":      func(x *Extension) { x.Name = "other" },
		"URL":       func(x *Extension) { x.ClientConfig.URL += "/" },
		"CABundle":  func(x *Extension) { x.ClientConfig.CABundle = []byte("x") },
		"Protocol":  func(x *Extension) { x.ClientConfig.Protocol = registry.GRPC },
		"InCluster": func(x *Extension) { x.ClientConfig.InCluster = true },
		"Selector":  func(x *Extension) { x.NamespaceSelector = selected.NamespaceSelector },
		"Settings":  func(x *Extension) { x.Settings = map[string]string{"a": "b"} },
		"Handlers":  func(x *Extension) { x.Handlers = []registry.Handler{{Name: "v"}} },
		"LastKnown": func(x *Extension) { x.LastKnown = []registry.Handler{{Name: "v"}} },
		"Paused":    func(x *Extension) { x.Paused = true },
	} {
		other := base()
		if change(&other); x.Equal(&other) || other.Equal(&x) {
			t.Errorf("another %s is no change", name)
		}
	}
}
