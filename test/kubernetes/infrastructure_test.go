// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/json"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/infrastructure"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/serving/servers"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// infrastructureServer is an API server with the kinds of an infrastructure provider.
type infrastructureServer struct {
	client.Client
	config   *rest.Config
	warnings warnings
}

// warnings records the warnings of an API server.
type warnings struct{ list []string }

// HandleWarningHeader records a warning; requests of the test are made one after the other.
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) { w.list = append(w.list, text) }

func newInfrastructureServer(t *testing.T) *infrastructureServer {
	t.Helper()
	config, _ := emptyServer(t, filepath.Join("..", "..", "deploy", "crd", "infrastructure"))
	s := &infrastructureServer{config: config}
	strict := rest.CopyConfig(config)
	strict.WarningHandler = &s.warnings
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, apiextensionsv1.AddToScheme, corev1.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(strict, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	s.Client = client.WithFieldValidation(c, metav1.FieldValidationStrict)
	return s
}

// infrastructureObject returns an object in YAML below its root.
func infrastructureObject(t testing.TB, kind, name, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	o.SetAPIVersion(infrav1.GroupVersion.String())
	o.SetKind(kind)
	o.SetName(name)
	if kind != infrav1.InfrastructureClassKind {
		o.SetNamespace("default")
	}
	return o
}

// TestInfrastructureKinds creates and changes objects of each kind on a real API server. The unit tests of the kinds
// have all rules and limits; here are those that depend on what an API server does with them.
func TestInfrastructureKinds(t *testing.T) {
	s := newInfrastructureServer(t)
	t.Run("Discovery", s.discovery)
	t.Run("Explain", s.explain)
	t.Run("Transitions", s.transitions)
	t.Run("Status", s.status)
	t.Run("Managers", s.managers)
}

func (s *infrastructureServer) discovery(t *testing.T) {
	d, err := discovery.NewDiscoveryClientForConfig(s.config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := d.ServerResourcesForGroupVersion(infrav1.GroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range list.APIResources {
		got[r.Name] = strings.Join(append(r.ShortNames, r.Categories...), " ")
	}
	want := map[string]string{
		"infrastructureclasses": "infraclass cluster-api", "infrastructureclasses/status": "",
		"hookgateclusteridentities": "hgci cluster-api", "hookgateclusteridentities/status": "",
		"hookgateclusters": "hgc cluster-api", "hookgateclusters/status": "", "hookgateclustertemplates": "hgct cluster-api",
		"hookgatemachines": "hgm cluster-api", "hookgatemachines/status": "",
		"hookgatemachinetemplates": "hgmt cluster-api", "hookgatemachinetemplates/status": "",
		"hookgatemachinepools": "hgmp cluster-api", "hookgatemachinepools/status": "", "hookgatemachinepooltemplates": "hgmpt cluster-api",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// explain asks as a user does; the unit tests look at the description of each field. An API server publishes the
// schemas of new kinds some time after it serves them, one kind after the other.
func (s *infrastructureServer) explain(t *testing.T) {
	kubectl, kubeconfig := filepath.Join(apiServer.BinaryAssetsDirectory, "kubectl"), kubeconfigOf(t, s.config)
	for field, want := range map[string]string{
		"hookgatecluster.spec.externalID":                           "names everything in the backend that belongs to the Cluster",
		"hookgatemachinetemplate.spec.template.spec.parameters":     "passed to the extension for each machine",
		"infrastructureclass.spec.allowedNamespaces.selector":       "selects namespaces by their labels",
		"hookgatemachinepool.status.instances.addresses":            "the addresses of the instance",
		"hookgateclustertemplate.spec.template.spec.credentialsRef": "names a Secret",
	} {
		var text string
		process.Eventually(t, "kubectl explains "+field, func() bool {
			out, err := exec.CommandContext(t.Context(), kubectl, "--kubeconfig", kubeconfig, "explain", field).CombinedOutput()
			text = strings.Join(strings.Fields(string(out)), " ")
			return err == nil
		})
		if !strings.Contains(text, want) {
			t.Errorf("%s: got %q, want %q in it", field, text, want)
		}
	}
}

// transitions checks that an update is compared with what is stored, whichever way it is written.
func (s *infrastructureServer) transitions(t *testing.T) {
	tests := []struct {
		reason, kind, before, patch, want string
	}{
		{"the class stays", "HookgateCluster", "spec: {infrastructureClassName: a}", `{"spec":{"infrastructureClassName":"b"}}`, "the infrastructure belongs to the extension that made it"},
		{"an external ID is minted", "HookgateCluster", "spec: {infrastructureClassName: a}", `{"spec":{"externalID":"c-1"}}`, ""},
		{"an external ID stays", "HookgateMachine", "spec: {externalID: m-1}", `{"spec":{"externalID":"m-2"}}`, "externalID must not change"},
		{"an external ID is not removed", "HookgateMachine", "spec: {externalID: m-1}", `{"spec":{"externalID":null}}`, "externalID must not change"},
		{"nor with all of the spec", "HookgateMachine", "spec: {externalID: m-1}", `{"spec":null}`, "spec: Required value"},
		{"a provider ID stays", "HookgateMachine", "spec: {providerID: 'acme://1'}", `{"spec":{"providerID":"acme://2"}}`, "providerID must not change"},
		{"parameters change", "HookgateMachine", "spec: {parameters: {a: 1}}", `{"spec":{"parameters":{"a":2}}}`, ""},
		{"a hosted control plane sets the endpoint", "HookgateCluster", "spec: {infrastructureClassName: a}", `{"spec":{"controlPlaneEndpoint":{"host":"h","port":6443}}}`, ""},
		{"and another one", "HookgateCluster", "spec: {infrastructureClassName: a, controlPlaneEndpoint: {host: h, port: 6443}}", `{"spec":{"controlPlaneEndpoint":{"host":"i"}}}`, ""},
		{"the instances of a pool stay what they are", "HookgateMachinePool", "spec: {}", `{"spec":{"instanceManagement":"Group"}}`, "instanceManagement must not change"},
		{"a list of provider IDs shrinks", "HookgateMachinePool", "spec: {providerIDList: [a, b]}", `{"spec":{"providerIDList":["b"]}}`, ""},
		{"a field that is not there is noticed", "HookgateMachine", "spec: {}", `{"spec":{"failureDomain":"a"}}`, `unknown field "spec.failureDomain"`},
		{"as is parameters that are no object", "HookgateMachine", "spec: {}", `{"spec":{"parameters":"a"}}`, "spec.parameters: Invalid value"},
	}
	for i, test := range tests {
		t.Run(test.kind+" "+test.reason, func(t *testing.T) {
			o := infrastructureObject(t, test.kind, "transition-"+string(rune('a'+i)), test.before)
			if err := s.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			err := s.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(test.patch)))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// status checks that the Go types write what Cluster API has to read: false and 0 as well.
func (s *infrastructureServer) status(t *testing.T) {
	pool := &infrav1.HookgateMachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "status"}}
	if err := s.Create(t.Context(), pool); err != nil {
		t.Fatalf("a pool with an empty spec: %v", err)
	}
	pool.Status.Ready, pool.Status.Replicas = new(false), new(int32(0))
	pool.Status.Initialization.Provisioned = new(false)
	if err := s.Status().Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	stored := infrastructureObject(t, infrav1.HookgateMachinePoolKind, "status", "{}")
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"ready": false, "replicas": int64(0), "initialization": map[string]any{"provisioned": false}}
	if diff := cmp.Diff(want, stored.Object["status"]); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{}, stored.Object["spec"]); diff != "" {
		t.Errorf("the API server wrote defaults: %s", diff)
	}
}

// managers writes a HookgateCluster as the topology controller and as this provider do, in turns: neither takes fields
// from the other, and what the topology controller applies again changes nothing.
func (s *infrastructureServer) managers(t *testing.T) {
	topology := func(dryRun bool) *unstructured.Unstructured {
		o := infrastructureObject(t, infrav1.HookgateClusterKind, "managers",
			"spec: {infrastructureClassName: acme, parameters: {network: {cidr: 10.0.0.0/8, tags: [a]}}}")
		o.SetLabels(map[string]string{clusterv1.ClusterTopologyOwnedLabel: ""})
		options := []client.ApplyOption{client.FieldOwner("capi-topology"), client.ForceOwnership}
		if dryRun {
			options = append(options, client.DryRunAll)
		}
		if err := s.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), options...); err != nil {
			t.Fatal(err)
		}
		return o
	}
	topology(false)
	cluster := &infrav1.HookgateCluster{}
	key := client.ObjectKey{Namespace: "default", Name: "managers"}
	if err := s.Get(t.Context(), key, cluster); err != nil {
		t.Fatal(err)
	}
	before := cluster.DeepCopy()
	cluster.Spec.ExternalID = "c-1"
	cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "h", Port: 6443}
	cluster.Finalizers = append(cluster.Finalizers, infrav1.ClusterFinalizer)
	if err := s.Patch(t.Context(), cluster, client.MergeFrom(before), client.FieldOwner("hookgate-infrastructure")); err != nil {
		t.Fatal(err)
	}
	if dry := topology(true); dry.GetResourceVersion() != cluster.ResourceVersion {
		t.Errorf("a dry run has resource version %s, and the object %s", dry.GetResourceVersion(), cluster.ResourceVersion)
	}
	topology(false)
	after := &infrav1.HookgateCluster{}
	if err := s.Get(t.Context(), key, after); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cluster, after); diff != "" {
		t.Errorf("applying the same again changed the object: %s", diff)
	}
}

// TestInfrastructureWebhooks calls the webhooks through a real API server, with the registrations of deploy/webhook.
func TestInfrastructureWebhooks(t *testing.T) {
	s := newInfrastructureServer(t)
	class := infrastructureObject(t, infrav1.InfrastructureClassKind, "acme", "spec: {extensionRef: {name: acme}}")
	if err := s.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	class.Object["status"] = map[string]any{"providerIDPrefix": "acme://", "schemas": map[string]any{"cluster": map[string]any{
		"type": "object", "required": []any{"network"}, "properties": map[string]any{"network": map[string]any{"type": "string"}},
	}}}
	if err := s.Status().Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	s.serveWebhooks(t)

	create := func(kind, name, text string) error {
		return s.Create(t.Context(), infrastructureObject(t, kind, name, text))
	}
	refused := func(err error, want string) {
		t.Helper()
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	refused(create("HookgateCluster", "wrong", "spec: {infrastructureClassName: acme, parameters: {network: 1}}"),
		"spec.parameters.network: Invalid value: must be of type string")
	refused(create("HookgateCluster", "wrong", "spec: {infrastructureClassName: acme, parameters: {network: n1}, credentialsRef: {name: s, namespace: other}}"),
		"spec.credentialsRef.namespace: Invalid value")
	if err := create("HookgateCluster", "right", "spec: {infrastructureClassName: acme, parameters: {network: n1}}"); err != nil {
		t.Error(err)
	}
	s.warnings.list = nil
	if err := create("HookgateCluster", "early", "spec: {infrastructureClassName: later}"); err != nil || len(s.warnings.list) != 1 {
		t.Errorf("%v, warnings %q", err, s.warnings.list)
	}
	refused(create("InfrastructureClass", "selector", "spec: {extensionRef: {name: a}, allowedNamespaces: {selector: {matchExpressions: [{key: a, operator: Is}]}}}"),
		"spec.allowedNamespaces.selector")

	refused(create("HookgateClusterIdentity", "selector", "spec: {credentialsRef: {name: s}, allowedNamespaces: {selector: {matchExpressions: [{key: a, operator: Is}]}}}"),
		"spec.allowedNamespaces.selector")
	if err := create("HookgateClusterIdentity", "team-a", "spec: {credentialsRef: {name: s}, allowedNamespaces: {names: [team-a]}}"); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"nobody": "there is no HookgateClusterIdentity", "team-a": "does not allow the namespace"} {
		s.warnings.list = nil
		if err := create("HookgateCluster", "of-"+name, "spec: {infrastructureClassName: acme, parameters: {network: n1}, identityRef: {name: "+name+"}}"); err != nil ||
			len(s.warnings.list) != 1 || !strings.Contains(s.warnings.list[0], want) {
			t.Errorf("%v, warnings %q, want %q", err, s.warnings.list, want)
		}
	}
	for _, kind := range []string{"HookgateClusterTemplate", "HookgateMachineTemplate", "HookgateMachinePoolTemplate"} {
		t.Run(kind, func(t *testing.T) { s.immutable(t, kind) })
	}
}

// immutable changes a template as users and the topology controller do.
func (s *infrastructureServer) immutable(t *testing.T, kind string) {
	apply := func(size, annotation string, options ...client.ApplyOption) error {
		o := infrastructureObject(t, kind, "immutable", "spec: {template: {spec: {parameters: {size: "+size+"}}}}")
		if kind == "HookgateClusterTemplate" {
			_ = unstructured.SetNestedField(o.Object, "acme", "spec", "template", "spec", "infrastructureClassName")
		}
		if annotation != "" {
			o.SetAnnotations(map[string]string{annotation: ""})
		}
		return s.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o),
			append(options, client.FieldOwner("capi-topology"), client.ForceOwnership)...)
	}
	if err := apply("small", ""); err != nil {
		t.Fatal(err)
	}
	stored := infrastructureObject(t, kind, "immutable", "{}")
	read := func() *unstructured.Unstructured {
		t.Helper()
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
			t.Fatal(err)
		}
		return stored.DeepCopy()
	}
	before := read()
	if err := apply("small", ""); err != nil {
		t.Errorf("the same again: %v", err)
	}
	if err := apply("large", clusterv1.TopologyDryRunAnnotation, client.DryRunAll); err != nil {
		t.Errorf("the dry run of the topology controller: %v", err)
	}
	for reason, err := range map[string]error{
		"a change":                     apply("large", ""),
		"the dry run of a user":        apply("large", "", client.DryRunAll),
		"a change with the annotation": apply("large", clusterv1.TopologyDryRunAnnotation),
	} {
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.template.spec: Forbidden: must not change") {
			t.Errorf("%s: %v", reason, err)
		}
	}
	if diff := cmp.Diff(before, read()); diff != "" {
		t.Errorf("the template has changed: %s", diff)
	}
}

// serveWebhooks serves the webhooks, and registers them at the API server.
func (s *infrastructureServer) serveWebhooks(t *testing.T) {
	t.Helper()
	pair := certificates.New(t)
	certificate := certificates.Server(t, pair)
	handler := infrastructure.Webhooks(s.Client, slog.New(slog.DiscardHandler))
	server := servers.NewSide(servers.SideConfig{
		Name: "webhooks", Address: "127.0.0.1:0", TLS: certificate,
		Handler: handler, Logger: slog.New(slog.DiscardHandler),
	})
	if err := server.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := yaml.UnmarshalStrict(documents(t, "infrastructure", "webhooks.yaml")[0], config); err != nil {
		t.Fatal(err)
	}
	for i := range config.Webhooks {
		c := &config.Webhooks[i].ClientConfig
		c.URL, c.CABundle, c.Service = new("https://"+server.Addr().String()+*c.Service.Path), pair.CAPEM, nil
	}
	if err := s.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	probe, err := json.Marshal(map[string]any{"spec": map[string]any{"infrastructureClassName": "acme", "parameters": map[string]any{"network": 1}}})
	if err != nil {
		t.Fatal(err)
	}
	// The API server takes some time to call a webhook that is new.
	eventually(t, "the webhooks are called", func() (string, bool) {
		o := infrastructureObject(t, infrav1.HookgateClusterKind, "probe", string(probe))
		err := s.Create(t.Context(), o, client.DryRunAll)
		if err == nil {
			return "admitted", false
		}
		return err.Error(), apierrors.IsInvalid(err)
	})
}
