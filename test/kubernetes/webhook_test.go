// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// webhookServer is a separate API server that calls a gateway's webhooks.
type webhookServer struct {
	client.Client
	gateway *gateway
	pair    *devcert.Pair

	mu       sync.Mutex
	warnings []string
}

// HandleWarningHeader records the API server's warnings, as kubectl would print them.
func (s *webhookServer) HandleWarningHeader(_ int, _ string, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warnings = append(s.warnings, text)
}

// warned returns the warnings since the last call.
func (s *webhookServer) warned() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.warnings
	s.warnings = nil
	return list
}

// newWebhookClient starts an API server with the definitions of a group, whose warnings it keeps.
func newWebhookClient(t *testing.T, group string) (*webhookServer, *rest.Config) {
	t.Helper()
	crds := filepath.Join("..", "..", "deploy", "crd")
	config, _ := emptyServer(t, filepath.Join(crds, group+"_extensionconfigs.yaml"),
		filepath.Join(crds, "hookgate.dev_extensionpolicies.yaml"), filepath.Join(crds, "hookgate.dev_handlerchains.yaml"),
		filepath.Join(crds, "hookgate.dev_hookrules.yaml"), filepath.Join(crds, "hookgate.dev_hookjobs.yaml"),
		filepath.Join(crds, "hookgate.dev_extensionrollouts.yaml"), filepath.Join(crds, "hookgate.dev_extensionrolloutrecords.yaml"))
	s := &webhookServer{}
	config.WarningHandler = s
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme, admissionregistrationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if s.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	return s, config
}

// newWebhookServer starts an API server and a gateway. It calls before ahead of registering the webhooks.
func newWebhookServer(t *testing.T, group string, before func(c client.Client), flags ...string) *webhookServer {
	t.Helper()
	s, config := newWebhookClient(t, group)
	before(s)

	certs, port := t.TempDir(), process.FreePort(t)
	s.pair = certificates.In(t, certs)
	s.gateway = startGateway(t, kubeconfigOf(t, config), certs, append([]string{
		"--extension-config-group", group, "--webhook-port", strconv.Itoa(port), "--webhook-cert-dir", certs,
		"--gateway-address", "gateway.gateway-system.svc"}, flags...)...)
	s.register(t, group, "https://127.0.0.1:"+strconv.Itoa(port))
	return s
}

// register registers the webhooks of deploy/webhook with base in place of the Service.
func (s *webhookServer) register(t *testing.T, group, base string) {
	t.Helper()
	asked := 0
	at := func(c *admissionregistrationv1.WebhookClientConfig) {
		asked++
		c.URL, c.CABundle, c.Service = new(base+*c.Service.Path), s.pair.CAPEM, nil
	}
	for _, folder := range []string{group, "policies"} {
		for _, document := range documents(t, folder, "webhooks.yaml") {
			mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{},
				&admissionregistrationv1.ValidatingWebhookConfiguration{}
			var object client.Object = mutating
			if bytes.Contains(document, []byte("kind: Validating")) {
				object = validating
			}
			if err := yaml.UnmarshalStrict(document, object); err != nil {
				t.Fatal(err)
			}
			for i := range mutating.Webhooks {
				at(&mutating.Webhooks[i].ClientConfig)
			}
			for i := range validating.Webhooks {
				at(&validating.Webhooks[i].ClientConfig)
			}
			if err := s.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	if asked != 8 {
		t.Fatalf("the manifests have %d webhooks, want 8", asked)
	}
	patch := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(documents(t, group, "conversion.yaml")[0], patch); err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := s.Get(t.Context(), client.ObjectKey{Name: patch.Name}, crd); err != nil {
		t.Fatal(err)
	}
	crd.Spec.Conversion = patch.Spec.Conversion
	to := crd.Spec.Conversion.Webhook.ClientConfig
	to.URL, to.CABundle, to.Service = new(base+*to.Service.Path), s.pair.CAPEM, nil
	if err := s.Update(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	// The API server picks up each of these a moment later.
	eventually(t, "the webhooks are in use", func() (string, bool) {
		converted := s.notInUse(t, group)
		probe := object(t, policyManifest("probe", "matchConditions: [{name: a, expression: nobody}]"))
		policy := s.Create(t.Context(), probe)
		if policy == nil { // otherwise the next one would be refused because it exists
			policy = errors.Join(errors.New("no validation of policies"), s.Delete(t.Context(), probe))
		}
		return fmt.Sprint(converted, policy), converted == nil && apierrors.IsInvalid(policy)
	})
}

// notInUse returns why the webhooks of ExtensionConfig are not in use yet.
func (s *webhookServer) notInUse(t *testing.T, group string) error {
	t.Helper()
	probe := object(t, `{apiVersion: `+group+`/v1alpha1, kind: ExtensionConfig, metadata: {name: probe}, spec: {clientConfig: {service: {namespace: apps, name: s}}}}`)
	if err := s.Create(t.Context(), probe); err != nil {
		return err
	}
	if err := s.Delete(t.Context(), probe); err != nil {
		return err
	}
	if port, _, _ := unstructured.NestedInt64(probe.Object, "spec", "clientConfig", "service", "port"); port != 443 {
		return errors.New("no defaults")
	}
	both := object(t, `{apiVersion: `+group+`/v1beta2, kind: ExtensionConfig, metadata: {name: probe}, spec: {clientConfig: {url: "https://a", service: {namespace: apps, name: s}}}}`)
	if err := s.Create(t.Context(), both); err == nil {
		return errors.Join(errors.New("no validation"), s.Delete(t.Context(), both))
	}
	// Without conversion, members that only one version has are dropped.
	c := &unstructured.Unstructured{Object: map[string]any{}}
	c.SetAPIVersion(group + "/v1alpha1")
	c.SetKind("ExtensionConfig")
	err := s.Get(t.Context(), client.ObjectKey{Name: "older"}, c)
	if conditions, _, _ := unstructured.NestedSlice(c.Object, "status", "v1beta2", "conditions"); err == nil &&
		len(conditions) == 0 {
		return errors.New("no conversion")
	}
	return client.IgnoreNotFound(err)
}

func documents(t *testing.T, folder, name string) [][]byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "deploy", "webhook", folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(content, []byte("\n---\n"))
}

// object returns the object in a manifest.
func object(t testing.TB, manifest string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatalf("%v:\n%s", err, manifest)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(content); err != nil {
		t.Fatalf("%v:\n%s", err, manifest)
	}
	return o
}

// kubeconfigOf writes a kubeconfig for an API server.
func kubeconfigOf(t testing.TB, config *rest.Config) string {
	t.Helper()
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
		Token: config.BearerToken}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}

const hookgateGroup = "runtime.hookgate.dev"

// configManifest returns an ExtensionConfig with metadata and spec, in YAML's flow style.
func configManifest(version, metadata, spec string) string {
	return "apiVersion: " + hookgateGroup + "/" + version + "\nkind: ExtensionConfig\nmetadata: {" + metadata + "}\nspec: {" + spec + "}\n"
}

func policyManifest(name, spec string) string {
	return "apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata: {name: " + name + "}\nspec: {targetRef: {name: acme}, " + spec + "}\n"
}

// as returns an object in another version.
func (s *webhookServer) as(t *testing.T, version, name string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(hookgateGroup + "/" + version)
	o.SetKind("ExtensionConfig")
	if err := s.Get(t.Context(), client.ObjectKey{Name: name}, o); err != nil {
		t.Fatal(err)
	}
	return o
}

const both = `clientConfig: {url: "https://a.example.com", service: {namespace: apps, name: s}}`

// TestWebhooks calls a real gateway through a real API server, with the registrations of deploy/webhook.
func TestWebhooks(t *testing.T) {
	s := newWebhookServer(t, hookgateGroup, func(c client.Client) {
		older := object(t, configManifest("v1beta2", "name: older, finalizers: [example.com/f]", both))
		if err := c.Create(t.Context(), older); err != nil {
			t.Fatal(err)
		}
		older.Object["status"] = object(t, configManifest("v1beta2", "name: older", both)+`
status: {conditions: [{type: Paused, status: "False", reason: NotPaused, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}`).Object["status"]
		if err := c.Status().Update(t.Context(), older); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("Conversion", s.testConversion)
	t.Run("Defaults", s.testDefaults)
	t.Run("Refused", s.testRefused)
	t.Run("Policies", s.testPolicies)
	t.Run("Chains", s.testChains)
	t.Run("Rules", s.testRules)
	t.Run("Warnings", s.testWarnings)
	t.Run("Older", s.testOlder)
	t.Run("Status", s.testStatus)
}

func (s *webhookServer) testConversion(t *testing.T) {
	pair := certificates.New(t)
	spec := `
  clientConfig:
    caBundle: ` + base64.StdEncoding.EncodeToString(pair.CAPEM) + `
    service: {namespace: apps, name: s, path: /p, port: 8443}
  namespaceSelector:
    matchLabels: {tier: gold}
    matchExpressions: [{key: a, operator: In, values: [b, c]}]
  settings: {k: v}
`
	handlers := `
  handlers:
  - {name: a.NAME, requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: BeforeClusterCreate}, timeoutSeconds: 5, failurePolicy: Ignore}
  - {name: b.NAME, requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: AfterClusterUpgrade}}
`
	conditions := `
    - {type: Discovered, status: "True", reason: Discovered, message: all well, observedGeneration: 3, lastTransitionTime: "2026-01-02T03:04:05Z"}
`
	legacy := `
      - {type: Discovered, status: "False", severity: Error, reason: DiscoveryFailed, message: no route, lastTransitionTime: "2026-01-02T03:04:06Z"}
`
	manifests := map[string]string{
		"v1alpha1": "status:" + handlers + "  conditions:" + legacy + "  v1beta2:\n    conditions:" + conditions,
		"v1beta2":  "status:" + handlers + "  conditions:" + conditions + "  deprecated:\n    v1beta1:\n      conditions:" + legacy,
	}
	for from, to := range map[string]string{"v1alpha1": "v1beta2", "v1beta2": "v1alpha1"} {
		t.Run(from, func(t *testing.T) {
			name := "from-" + from
			build := func(version string) *unstructured.Unstructured {
				head := "apiVersion: " + hookgateGroup + "/" + version + "\nkind: ExtensionConfig\nmetadata: {name: " + name + ", labels: {l: m}, annotations: {example.com/a: b}}\n"
				return object(t, head+"spec:"+spec+strings.ReplaceAll(manifests[version], "NAME", name))
			}
			made := build(from)
			create(t, s, made)
			made.Object["status"] = build(from).Object["status"]
			if err := s.Status().Update(t.Context(), made); err != nil {
				t.Fatal(err)
			}
			for _, version := range []string{from, to} {
				got, want := s.as(t, version, name), build(version)
				for _, part := range []string{"spec", "status"} {
					if diff := cmp.Diff(want.Object[part], got.Object[part]); diff != "" {
						t.Errorf("%s as %s (-want +got):\n%s", part, version, diff)
					}
				}
				if diff := cmp.Diff([]map[string]string{want.GetLabels(), want.GetAnnotations()}, []map[string]string{got.GetLabels(), got.GetAnnotations()}); diff != "" {
					t.Errorf("labels and annotations as %s (-want +got):\n%s", version, diff)
				}
			}
			// An object read in one version can be written in it, and reads the same in the other.
			read := s.as(t, to, name)
			if err := s.Update(t.Context(), read); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(build(from).Object["spec"], s.as(t, from, name).Object["spec"]); diff != "" {
				t.Errorf("spec after an update as %s (-want +got):\n%s", to, diff)
			}
		})
	}
}

func (s *webhookServer) testDefaults(t *testing.T) {
	for name, tc := range map[string]struct{ reason, version, spec, want string }{
		"service":  {"a Service has port 443", "v1beta2", "clientConfig: {service: {namespace: apps, name: s}}", "{clientConfig: {service: {namespace: apps, name: s, port: 443}}, namespaceSelector: {}}"},
		"v1alpha1": {"versions do not differ", "v1alpha1", "clientConfig: {service: {namespace: apps, name: s}}", "{clientConfig: {service: {namespace: apps, name: s, port: 443}}, namespaceSelector: {}}"},
		"said":     {"what is said stays", "v1beta2", "clientConfig: {service: {namespace: apps, name: s, port: 1}}, namespaceSelector: {matchLabels: {a: b}}", "{clientConfig: {service: {namespace: apps, name: s, port: 1}}, namespaceSelector: {matchLabels: {a: b}}}"},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, configManifest(tc.version, "name: default-"+name, tc.spec))
			create(t, s, o)
			want := object(t, "kind: a\nspec: "+tc.want).Object["spec"]
			if diff := cmp.Diff(want, s.as(t, "v1beta2", o.GetName()).Object["spec"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// refusal returns the API server's reasons to refuse an object, by field.
func refusal(t *testing.T, err error) string {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return fmt.Sprint(err)
	}
	var list []string
	if details := status.Status().Details; details != nil {
		for _, c := range details.Causes {
			list = append(list, c.Field+": "+c.Message)
		}
	}
	if len(list) == 0 {
		return status.Status().Message
	}
	return strings.Join(list, "\n")
}

func (s *webhookServer) testRefused(t *testing.T) {
	const url = `clientConfig: {url: "https://a.example.com"}`
	for name, tc := range map[string]struct{ version, metadata, spec, want string }{
		"name":     {"v1beta2", "name: a.b", url, `metadata.name: Invalid value: "a.b": "a.b" must consist of lower case letters, digits and '-', and begin and end with a letter or digit`},
		"both":     {"v1beta2", "name: a", both, "spec.clientConfig: Forbidden: must have url or service, not both"},
		"neither":  {"v1beta2", "name: a", "clientConfig: {caBundle: YQ==}", "spec.clientConfig: Required value: must have url or service\nspec.clientConfig.caBundle: Invalid value: must be base64 of at least one certificate in PEM"},
		"itself":   {"v1beta2", "name: a", "clientConfig: {service: {namespace: gateway-system, name: gateway}}", "spec.clientConfig: Forbidden: https://gateway.gateway-system.svc:443 is this gateway, which would call itself endlessly; give the address of the extension instead"},
		"v1alpha1": {"v1alpha1", "name: a", both, "spec.clientConfig: Forbidden: must have url or service, not both"},
		"two":      {"v1beta2", "name: a", "clientConfig: {service: {namespace: apps, name: s, port: -1, path: p}}", "spec.clientConfig.service.path: Invalid value: \"p\": must begin with /\nspec.clientConfig.service.port: Invalid value: -1: must be between 1 and 65535"},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, configManifest(tc.version, tc.metadata, tc.spec))
			err := s.Create(t.Context(), o)
			if err == nil {
				_ = s.Delete(t.Context(), o) // it should not be there
			}
			if got := refusal(t, err); !apierrors.IsInvalid(err) || !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %v\n%s\nwant %s", err, got, tc.want)
			}
		})
	}
}

func (s *webhookServer) testPolicies(t *testing.T) {
	for name, tc := range map[string]struct{ spec, want string }{
		"CEL":      {"matchConditions: [{name: a, expression: 'true'}, {name: b, expression: nobody}]", "spec.matchConditions[1].expression: Invalid value: line 1, column 1: undeclared reference to 'nobody'"},
		"selector": {"objectSelector: {matchExpressions: [{key: a, operator: In}]}", "spec.objectSelector.matchExpressions[0].values: Required value"},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, policyManifest("refused", tc.spec))
			err := s.Create(t.Context(), o)
			if err == nil {
				_ = s.Delete(t.Context(), o) // it should not be there
			}
			if got := refusal(t, err); !apierrors.IsInvalid(err) || !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %v\n%s\nwant %s", err, got, tc.want)
			}
		})
	}
	o := object(t, policyManifest("taken", "timeoutSeconds: 3, matchConditions: [{name: a, expression: 'request.settings.size() > 1'}]"))
	create(t, s, o)
	if err := unstructured.SetNestedField(o.Object, int64(4), "spec", "timeoutSeconds"); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), o); err != nil {
		t.Errorf("a good policy is not changed: %v", err)
	}
	s.warned()
	if err := unstructured.SetNestedField(o.Object, int64(30), "spec", "timeoutSeconds"); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), o); err != nil {
		t.Error(err)
	}
	want := []string{"spec.timeoutSeconds: Cluster API waits at most 30 s, including the time in the gateway: a smaller value leaves time for the answer to arrive"}
	if diff := cmp.Diff(want, s.warned()); diff != "" {
		t.Errorf("warnings of a policy (-want +got):\n%s", diff)
	}
}

func (s *webhookServer) testWarnings(t *testing.T) {
	const service = "clientConfig: {service: {namespace: apps, name: s}}"
	inject := "annotations: {runtime.cluster.x-k8s.io/inject-ca-from-secret: n/s}"
	ca := "caBundle: " + base64.StdEncoding.EncodeToString(s.pair.CAPEM)
	for name, tc := range map[string]struct {
		version, metadata, spec string
		want                    []string
	}{
		"nothing":   {"v1beta2", "", `clientConfig: {url: "https://a.example.com"}`, nil},
		"no bundle": {"v1beta2", "", service, []string{"spec.clientConfig.caBundle: is not set, and certificates of Services are seldom signed by a public authority; set it, or the annotation runtime.cluster.x-k8s.io/inject-ca-from-secret"}},
		"injected":  {"v1beta2", inject, service, nil},
		"both":      {"v1beta2", inject, "clientConfig: {" + ca + ", service: {namespace: apps, name: s}}", []string{"metadata.annotations[runtime.cluster.x-k8s.io/inject-ca-from-secret]: spec.clientConfig.caBundle is replaced by the CA in the Secret; leave one of the two out"}},
		"v1alpha1":  {"v1alpha1", "", `clientConfig: {url: "https://a.example.com"}`, []string{"runtime.hookgate.dev/v1alpha1 ExtensionConfig is deprecated; use runtime.hookgate.dev/v1beta2 ExtensionConfig"}},
	} {
		t.Run(name, func(t *testing.T) {
			s.warned()
			metadata := "name: warned"
			if tc.metadata != "" {
				metadata += ", " + tc.metadata
			}
			o := object(t, configManifest(tc.version, metadata, tc.spec))
			create(t, s, o)
			got := s.warned()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("on creation (-want +got):\n%s", diff)
			}
			if tc.version == "v1alpha1" {
				return
			}
			// A warning is not repeated with every change, such as the gateway's own change of caBundle.
			if err := unstructured.SetNestedStringMap(o.Object, map[string]string{"k": "v"}, "spec", "settings"); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(tc.metadata, "inject-ca-from-secret") {
				if err := unstructured.SetNestedField(o.Object, base64.StdEncoding.EncodeToString(append([]byte("\n"), s.pair.CAPEM...)), "spec", "clientConfig", "caBundle"); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Update(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if again := s.warned(); len(again) > 0 {
				t.Errorf("an update that changes none of it warns of %q", again)
			}
		})
	}
}

// testOlder checks that stored objects can still be labelled and deleted, even if they are invalid.
func (s *webhookServer) testOlder(t *testing.T) {
	o := s.as(t, "v1beta2", "older")
	o.SetLabels(map[string]string{"a": "b"})
	if err := s.Update(t.Context(), o); err != nil {
		t.Fatalf("a label: %v", err)
	}
	if err := unstructured.SetNestedField(o.Object, "https://b.example.com", "spec", "clientConfig", "url"); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), o); !apierrors.IsInvalid(err) {
		t.Errorf("a change of the spec that leaves it wrong: %v, want that it is invalid", err)
	}
	if err := s.Delete(t.Context(), o); err != nil {
		t.Fatalf("deletion: %v", err)
	}
	o = s.as(t, "v1beta2", "older")
	if o.GetDeletionTimestamp() == nil {
		t.Fatal("the finalizer does not hold it")
	}
	if err := unstructured.SetNestedField(o.Object, "https://b.example.com", "spec", "clientConfig", "url"); err != nil {
		t.Fatal(err)
	}
	o.SetFinalizers(nil)
	if err := s.Update(t.Context(), o); err != nil {
		t.Errorf("removal of the finalizer: %v", err)
	}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// testStatus checks that status is written without the webhooks, also while they are down.
func (s *webhookServer) testStatus(t *testing.T) {
	o := object(t, configManifest("v1beta2", "name: with-status", `clientConfig: {url: "https://a.example.com"}`))
	create(t, s, o)
	s.gateway.kill()
	condition := func(message string) any {
		return []any{map[string]any{"type": "Discovered", "status": "True", "reason": "Discovered", "message": message,
			"lastTransitionTime": "2026-01-01T00:00:00Z"}}
	}
	o.Object["status"] = map[string]any{"conditions": condition("no webhook is called")}
	if err := s.Status().Update(t.Context(), o); err != nil {
		t.Errorf("status: %v", err)
	}
	o.SetLabels(map[string]string{"a": "b"})
	if err := s.Update(t.Context(), o); !apierrors.IsInternalError(err) {
		t.Errorf("spec: got %v, want a refusal while the webhooks are down", err)
	}
}

// TestWebhooksOfClusterAPIsGroup: the other group has the same webhooks.
func TestWebhooksOfClusterAPIsGroup(t *testing.T) {
	const group = "runtime.cluster.x-k8s.io"
	s := newWebhookServer(t, group, func(client.Client) {}, "--read-only", "--leader-elect=false") // of a gateway that writes nothing
	text := strings.ReplaceAll(configManifest("v1alpha1", "name: a",
		"clientConfig: {service: {namespace: apps, name: s}}"), hookgateGroup, group)
	create(t, s, object(t, text))
	err := s.Create(t.Context(), object(t, strings.ReplaceAll(configManifest("v1beta2", "name: b", both), hookgateGroup,
		group)))
	if want := `ExtensionConfig.runtime.cluster.x-k8s.io "b" is invalid: spec.clientConfig: Forbidden: must have url or service, not both`; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestWebhooksDoNotWait: a gateway that cannot reach the API server, and is not ready, still converts for it: the API
// server may need that to list objects. A new certificate is used at once.
func TestWebhooksDoNotWait(t *testing.T) {
	config, _ := connect(t)
	config.Host = "https://127.0.0.1:" + strconv.Itoa(process.FreePort(t)) // where no server listens
	certs, port := t.TempDir(), strconv.Itoa(process.FreePort(t))
	renew := func() *http.Client {
		pair := certificates.In(t, certs)
		return &http.Client{Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: pair.ClientTLS(),
		}, Timeout: patience}
	}
	trusting := renew()
	g := launchGateway(t, kubeconfigOf(t, config), certs, "--webhook-port", port, "--webhook-cert-dir", certs,
		"--tls-min-version", "VersionTLS13")
	converts := func(c *http.Client) error {
		body := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":"runtime.cluster.x-k8s.io/v1beta2",` +
			`"objects":[{"apiVersion":"runtime.cluster.x-k8s.io/v1alpha1","kind":"ExtensionConfig","metadata":{"name":"a"}}]}}`
		response, err := c.Post("https://127.0.0.1:"+port+"/convert", "application/json", strings.NewReader(body))
		if err != nil {
			return err
		}
		defer response.Body.Close()
		answer := &apiextensionsv1.ConversionReview{}
		content := &bytes.Buffer{}
		if _, err := content.ReadFrom(response.Body); err != nil {
			return err
		}
		if err := yaml.Unmarshal(content.Bytes(), answer); err != nil || answer.Response == nil ||
			answer.Response.Result.Status != metav1.StatusSuccess {
			return fmt.Errorf("%s %s: %w", response.Status, content, err)
		}
		return nil
	}
	if err := converts(trusting); err != nil {
		t.Errorf("a gateway that has just started: %v", err)
	}
	response, err := http.Get("http://" + g.health + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("the gateway, which knows nothing, is %s", response.Status)
	}
	old := trusting.Transport.(*http.Transport)
	old.TLSClientConfig = old.TLSClientConfig.Clone()
	old.TLSClientConfig.MaxVersion = tls.VersionTLS12
	if err := converts(trusting); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.2 against --tls-min-version=VersionTLS13: %v", err)
	}
	renewed := renew()
	eventually(t, "the new certificate is served", func() (string, bool) {
		err := converts(renewed)
		return fmt.Sprint(err), err == nil
	})
}

// TestReadyWhenOnlyItCanConvert: an API server can list objects stored as v1alpha1 only with the help of the gateway
// that lists them, and reaches it only while it is ready, as by a Service.
func TestReadyWhenOnlyItCanConvert(t *testing.T) {
	config, _ := emptyServer(t, filepath.Join("..", "..", "deploy", "crd", hookgateGroup+"_extensionconfigs.yaml"),
		filepath.Join("..", "..", "deploy", "crd", "hookgate.dev_extensionpolicies.yaml"))
	config.WarningHandler = rest.NoWarnings{}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	change := func(storage string, how *apiextensionsv1.CustomResourceConversion) {
		t.Helper()
		if err := c.Get(t.Context(), client.ObjectKey{Name: "extensionconfigs." + hookgateGroup}, crd); err != nil {
			t.Fatal(err)
		}
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == storage
		}
		crd.Spec.Conversion = how
		if err := c.Update(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
	}
	certs, port := t.TempDir(), strconv.Itoa(process.FreePort(t))
	pair := certificates.In(t, certs)
	var health atomic.Value // the address of /readyz
	service := serviceOfReady(t, "127.0.0.1:"+port, &health)
	x := newExtension(t, "a")
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(hookgateGroup + "/v1beta2")
	list.SetKind("ExtensionConfigList")
	made := 0
	// The API server picks up a change of a definition some time later, without notice. At least one object has to be
	// stored as v1alpha1, which shows when it cannot be listed without a gateway.
	eventually(t, "an object that only the gateway can convert is stored", func() (string, bool) {
		change("v1alpha1", &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter})
		for range 5 {
			time.Sleep(200 * time.Millisecond)
			o := object(t, configManifest("v1alpha1",
				fmt.Sprintf("name: stored-%d, labels: {cluster.x-k8s.io/watch-filter: %s}", made, filterOf(t)),
				`clientConfig: {url: "`+x.URL+`", caBundle: `+base64.StdEncoding.EncodeToString(x.ca())+`}`))
			if err := c.Create(t.Context(), o); err != nil {
				return err.Error(), false
			}
			made++
		}
		change("v1beta2", &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new("https://" + service + "/convert"), CABundle: pair.CAPEM},
		}})
		for range 20 {
			time.Sleep(200 * time.Millisecond)
			if err := c.List(t.Context(), list); err != nil && strings.Contains(err.Error(), "conversion webhook") {
				return "", true
			}
		}
		return "all can be listed", false
	})
	g := launchGateway(t, kubeconfigOf(t, config), certs, "--extension-config-group", hookgateGroup, "--webhook-port", port,
		"--webhook-cert-dir", certs, "--gateway-address", "hookgate.hookgate-system.svc")
	health.Store(g.health)
	eventually(t, "all are discovered", func() (string, bool) {
		if err := c.List(t.Context(), list); err != nil {
			return err.Error(), false
		}
		n := 0
		for i := range list.Items {
			if handlers, _, _ := unstructured.NestedSlice(list.Items[i].Object, "status", "handlers"); len(handlers) == 1 {
				n++
			}
		}
		return fmt.Sprintf("%d of %d", n, made), n == made
	})
}

// serviceOfReady returns an address that leads to another one while the gateway with the health address is ready.
func serviceOfReady(t *testing.T, to string, health *atomic.Value) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	forward := func(from net.Conn) {
		defer func() { _ = from.Close() }()
		response, err := http.Get(fmt.Sprintf("http://%v/readyz", health.Load()))
		if err != nil {
			return
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return
		}
		conn, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		running.Go(func() {
			_, _ = io.Copy(conn, from)
			_ = conn.Close()
		})
		_, _ = io.Copy(from, conn)
	}
	running.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { forward(from) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return l.Addr().String()
}

// TestWebhooksThatCannotBeServed: invalid flags end the start with a message that names them.
func TestWebhooksThatCannotBeServed(t *testing.T) {
	config, _ := connect(t)
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	certs, empty := t.TempDir(), t.TempDir()
	certificates.In(t, certs)
	for name, tc := range map[string]struct {
		flags []string
		want  string
	}{
		"port":        {[]string{"--webhook-port", port, "--webhook-cert-dir", certs}, "listen on port " + port + ": the port is in use: stop the program that uses it, or choose another port with --webhook-port"},
		"certificate": {[]string{"--webhook-port", port, "--webhook-cert-dir", empty}, "read --webhook-cert-dir: " + filepath.Join(empty, "tls.crt") + " is missing: the directory needs tls.crt and tls.key in PEM"},
		"name":        {[]string{"--webhook-port", port, "--webhook-cert-dir", certs, "--webhook-key-name", "k"}, filepath.Join(certs, "k") + " is missing: the directory needs tls.crt and k in PEM"},
		"suites":      {[]string{"--tls-cipher-suites", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"}, "--tls-cipher-suites: HTTP/2 needs TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or "},
		"version":     {[]string{"--tls-min-version", "VersionTLS10"}, `--tls-min-version: want VersionTLS12 or VersionTLS13, got "VersionTLS10"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := runGateway(t, kubeconfigOf(t, config), certs, tc.flags...)
			select {
			case <-g.done:
			case <-time.After(patience):
				t.Fatal("the gateway runs")
			}
			if !strings.Contains(g.log.String(), tc.want) || strings.Contains(g.log.String(), "serving https=") {
				t.Errorf("the gateway printed:\n%s\nwant %s", g.log, tc.want)
			}
		})
	}
}
