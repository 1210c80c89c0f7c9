// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/infrastructure/parameters"
	"github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/alloctest"
)

// store is a reader of the objects in it.
type store struct {
	client.Reader
	objects []client.Object
	err     error // of every read, if it is set
}

func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if s.err != nil {
		return s.err
	}
	for _, o := range s.objects {
		if reflect.TypeOf(o) == reflect.TypeOf(into) && client.ObjectKeyFromObject(o) == key {
			reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o.DeepCopyObject()).Elem())
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.String())
}

const (
	clusterSchema = `{"type":"object","required":["network"],"properties":{"network":{"type":"string"}}}`
	machineSchema = `{"type":"object","required":["size"],"properties":{"size":{"type":"string","enum":["small","large"]},"disk":{"type":"integer","maximum":100}},
		"x-kubernetes-validations":[{"rule":"self.size != 'small' || !has(self.disk) || self.disk < 50","message":"a small machine has a small disk"}]}`
	poolSchema = `{"type":"object","properties":{"group":{"type":"string"}}}`
)

func parse(t testing.TB, text string) *apiextensionsv1.JSON {
	t.Helper()
	if text == "" {
		return nil
	}
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &apiextensionsv1.JSON{Raw: content}
}

// installed returns a namespace, a class that has announced its parameters, and a Cluster of it.
func installed(t testing.TB) *store {
	t.Helper()
	class := &v1alpha1.InfrastructureClass{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	class.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}}
	class.Spec.DefaultParameters.Machine = parse(t, "{disk: 10}")
	class.Status.ProviderIDPrefix = "acme://"
	class.Status.Handlers.ReconcileMachinePool = "pool"
	class.Status.Schemas = v1alpha1.ParameterSchemas{Cluster: parse(t, clusterSchema), Machine: parse(t, machineSchema), MachinePool: parse(t, poolSchema)}
	silent := &v1alpha1.InfrastructureClass{ObjectMeta: metav1.ObjectMeta{Name: "silent"}}
	broken := class.DeepCopy()
	broken.Name, broken.Spec.AllowedNamespaces = "broken", nil
	broken.Status.Schemas.Cluster = parse(t, "{type: array}")
	composed := class.DeepCopy()
	composed.Name, composed.Status.Handlers.ReconcileMachinePool = "composed", ""
	objects := []client.Object{
		class, silent, broken, composed,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"team": "a"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "b"}},
	}
	for _, name := range []string{"acme", "composed"} {
		infrastructure := &v1alpha1.HookgateCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name + "-infra"}}
		infrastructure.Spec.InfrastructureClassName = name
		owner := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
		owner.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: "infrastructure.hookgate.dev", Kind: "HookgateCluster", Name: name + "-infra",
		}
		objects = append(objects, infrastructure, owner)
	}
	foreign := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "foreign"}}
	foreign.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "other.example", Kind: "HookgateCluster", Name: "acme-infra"}
	return &store{objects: append(objects, foreign)}
}

// ask sends a request for admission of an object in YAML, which is new if old is empty.
func ask(t testing.TB, h http.Handler, kind, old, object string, dryRun bool) *admissionv1.AdmissionResponse {
	t.Helper()
	request := &admissionv1.AdmissionRequest{UID: "u", Operation: admissionv1.Create, DryRun: &dryRun}
	request.Object = encoded(t, kind, object)
	if old != "" {
		request.Operation, request.OldObject = admissionv1.Update, encoded(t, kind, old)
	}
	review := admissionv1.AdmissionReview{Request: request}
	review.APIVersion, review.Kind = "admission.k8s.io/v1", "AdmissionReview"
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, Path(kind), bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	answer := admissionv1.AdmissionReview{}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Response == nil {
		t.Fatalf("answered %d %s: %v", w.Code, w.Body, err)
	}
	return answer.Response
}

func encoded(t testing.TB, kind, text string) runtime.RawExtension {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	object["apiVersion"], object["kind"] = "infrastructure.hookgate.dev/v1alpha1", kind
	content, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: content}
}

func handler(t testing.TB, s *store) http.Handler {
	t.Helper()
	return New(Config{Reader: s, Schemas: parameters.NewCache(), Logger: slog.New(slog.DiscardHandler)})
}

const (
	inA       = "metadata: {namespace: a, name: o}, "
	ofAcme    = "metadata: {namespace: a, name: o, labels: {cluster.x-k8s.io/cluster-name: acme}}, "
	ofOwned   = "metadata: {namespace: a, name: o, labels: {cluster.x-k8s.io/cluster-name: acme, topology.cluster.x-k8s.io/owned: ''}}, "
	marked    = "metadata: {namespace: a, name: o, annotations: {topology.cluster.x-k8s.io/dry-run: ''}}, "
	templated = "spec: {template: {spec: {%s}}}"
)

func TestAdmission(t *testing.T) {
	template := func(metadata, spec string) string {
		return "{" + metadata + strings.Replace(templated, "%s", spec, 1) + "}"
	}
	cluster := func(spec string) string {
		return "{" + inA + "spec: {infrastructureClassName: acme, " + spec + "}}"
	}
	machine := func(metadata, parameters string) string {
		return "{" + metadata + "spec: {parameters: " + parameters + "}}"
	}
	ofComposed := strings.Replace(ofAcme, "name: acme", "name: composed", 1)
	ofInstance := strings.Replace(ofAcme, "labels:", "annotations: {infrastructure.hookgate.dev/instance: i}, labels:", 1)
	tests := []struct {
		reason      string
		kind        string
		old, object string
		dryRun      bool
		want        string   // a part of the refusal; empty if the object is admitted
		warnings    []string // parts of the warnings
	}{
		{"a cluster as it should be", "HookgateCluster", "", cluster("parameters: {network: n1}"), false, "", nil},
		{"wrong parameters of a cluster", "HookgateCluster", "", cluster("parameters: {network: 1}"), false, "spec.parameters.network: Invalid value: must be of type string", nil},
		{"missing parameters of a cluster", "HookgateCluster", "", cluster(""), false, "spec.parameters.network: Required value", nil},
		{"parameters that are a list", "HookgateCluster", "", cluster("parameters: []"), false, "spec.parameters: Invalid value: must be a JSON object", nil},
		{"the class comes later", "HookgateCluster", "", "{" + inA + "spec: {infrastructureClassName: later, parameters: {any: 1}}}", false, "", []string{`spec.infrastructureClassName: there is no InfrastructureClass "later" yet`}},
		{"the extension is discovered later", "HookgateCluster", "", "{metadata: {namespace: b, name: o}, spec: {infrastructureClassName: silent, parameters: {any: 1}}}", false, "", []string{`InfrastructureClass "silent" has not announced its parameters yet`}},
		{"the class is for another team", "HookgateCluster", "", "{metadata: {namespace: b, name: o}, spec: {infrastructureClassName: acme, parameters: {network: n1}}}", false, "", []string{`InfrastructureClass "acme" does not allow the namespace "b"`}},
		{"a schema that is not one is the class's problem", "HookgateCluster", "", "{" + inA + "spec: {infrastructureClassName: broken, parameters: {any: 1}}}", false, "", nil},
		{"credentials of the same namespace", "HookgateCluster", "", cluster("parameters: {network: n1}, credentialsRef: {name: s, namespace: a}"), false, "", nil},
		{"credentials of another namespace", "HookgateCluster", "", cluster("parameters: {network: n1}, credentialsRef: {name: s, namespace: b}"), false, "spec.credentialsRef.namespace: Invalid value: \"b\": must be the namespace of the object", nil},
		{"what was wrong before blocks nothing else", "HookgateCluster", cluster("parameters: {network: 1}, credentialsRef: {name: s, namespace: b}"), cluster("parameters: {network: 1}, credentialsRef: {name: s, namespace: b}, externalID: c"), false, "", nil},
		{"nor does it where something else is changed", "HookgateCluster", cluster("parameters: {network: 1, nets: 2}"), cluster("parameters: {network: 1}"), false, "", nil},
		{"but a new mistake is one", "HookgateCluster", cluster("parameters: {network: 1}"), cluster("parameters: {network: 1, nets: 2}"), false, "spec.parameters.nets: Forbidden", nil},
		{"the order of members is no change", "HookgateCluster", cluster("parameters: {a: 1, b: 2}"), cluster("parameters: {b: 2, a: 1}"), false, "", nil},
		{"a class that is missing is reported once", "HookgateCluster", "{" + inA + "spec: {infrastructureClassName: later, parameters: {any: 1}}}", "{" + inA + "spec: {infrastructureClassName: later, parameters: {any: 2}}}", false, "", nil},
		{"a cluster that is deleted passes", "HookgateCluster", cluster("parameters: {network: n1}"), "{metadata: {namespace: a, name: o, deletionTimestamp: '2026-01-01T00:00:00Z'}, spec: {infrastructureClassName: acme, parameters: {network: 1}}}", false, "", nil},
		{"an externally managed cluster stays one", "HookgateCluster", "{metadata: {namespace: a, name: o, annotations: {cluster.x-k8s.io/managed-by: x}}, spec: {infrastructureClassName: acme, parameters: {network: n}}}", cluster("parameters: {network: n}"), false, "metadata.annotations[cluster.x-k8s.io/managed-by]: Forbidden: must not be removed", nil},
		{"a cluster may become one", "HookgateCluster", cluster("parameters: {network: n}"), "{metadata: {namespace: a, name: o, annotations: {cluster.x-k8s.io/managed-by: x}}, spec: {infrastructureClassName: acme, parameters: {network: n}}}", false, "", nil},
		{"an endpoint may change", "HookgateCluster", cluster("parameters: {network: n}, controlPlaneEndpoint: {host: a, port: 1}"), cluster("parameters: {network: n}, controlPlaneEndpoint: {host: b, port: 1}"), false, "", nil},

		{"a machine as it should be", "HookgateMachine", "", machine(ofAcme, "{size: small}"), false, "", nil},
		{"the class's defaults count", "HookgateMachine", "", machine(ofAcme, "{size: small, disk: null}"), false, "", nil},
		{"a rule of the schema", "HookgateMachine", "", machine(ofAcme, "{size: small, disk: 60}"), false, "spec.parameters: Invalid value: a small machine has a small disk", nil},
		{"a wrong value", "HookgateMachine", "", machine(ofAcme, "{size: huge}"), false, `spec.parameters.size: Unsupported value: "huge"`, nil},
		{"the class of a machine without a cluster is not known", "HookgateMachine", "", machine(inA, "{size: huge}"), false, "", nil},
		{"nor that of a Cluster of something else", "HookgateMachine", "", machine(strings.Replace(ofAcme, "name: acme", "name: foreign", 1), "{size: huge}"), false, "", nil},
		{"nor that of a Cluster that does not exist", "HookgateMachine", "", machine(strings.Replace(ofAcme, "name: acme", "name: gone", 1), "{size: huge}"), false, "", nil},
		{"an update by an update extension", "HookgateMachine", machine(ofAcme, "{size: small}"), machine(ofAcme, "{size: huge}"), false, `spec.parameters.size: Unsupported value`, nil},
		{"a provider ID is no change of parameters", "HookgateMachine", machine(ofAcme, "{size: huge}"), "{" + ofAcme + "spec: {parameters: {size: huge}, providerID: acme://1}}", false, "", nil},

		{"a pool of a backend with groups", "HookgateMachinePool", "", machine(ofAcme, "{group: g}"), false, "", nil},
		{"has parameters of pools", "HookgateMachinePool", "", machine(ofAcme, "{size: small}"), false, "spec.parameters.size: Forbidden", nil},
		{"a pool of machines", "HookgateMachinePool", "", machine(strings.Replace(ofAcme, "name: acme", "name: composed", 1), "{size: small}"), false, "", nil},
		{"has parameters of machines", "HookgateMachinePool", "", machine(strings.Replace(ofAcme, "name: acme", "name: composed", 1), "{group: g}"), false, "spec.parameters.group: Forbidden", nil},

		{"a group has parameters of pools, also without hooks for them", "HookgateMachinePool", "", "{" + ofComposed + "spec: {instanceManagement: Group, parameters: {group: g}}}", false, "", nil},
		{"a pool that was made of machines stays so", "HookgateMachinePool", "", "{" + strings.Replace(ofAcme, "labels:", "annotations: {infrastructure.hookgate.dev/instances: machines}, labels:", 1) + "spec: {externalID: p, parameters: {group: g}}}", false, "spec.parameters.group: Forbidden", nil},
		{"so does one from before that was recorded", "HookgateMachinePool", "", "{" + ofAcme + "spec: {externalID: p, parameters: {size: small}}}", false, "", nil},
		{"and a pool that was made by a group", "HookgateMachinePool", "", "{" + strings.Replace(ofComposed, "labels:", "annotations: {infrastructure.hookgate.dev/instances: group}, labels:", 1) + "spec: {externalID: p, parameters: {group: g}}}", false, "", nil},
		{"an instance of a group needs no parameters", "HookgateMachine", "", "{" + ofInstance + "spec: {externalID: m}}", false, "", nil},
		{"an instance stays one", "HookgateMachine", "{" + ofInstance + "spec: {externalID: m}}", machine(ofAcme, "{size: small}"), false, "metadata.annotations[infrastructure.hookgate.dev/instance]: Forbidden: must not change", nil},

		{"a template of a ClusterClass is not complete", "HookgateClusterTemplate", "", template(inA, "infrastructureClassName: acme"), false, "", nil},
		{"what is in it may be replaced", "HookgateClusterTemplate", "", template(inA, "infrastructureClassName: acme, parameters: {network: 1}"), false, "", []string{"spec.template.spec.parameters.network: Invalid value: must be of type string"}},
		{"a template is used in any namespace", "HookgateClusterTemplate", "", template("metadata: {namespace: b, name: o}, ", "infrastructureClassName: acme"), false, "", nil},
		{"a template of a class that comes later", "HookgateClusterTemplate", "", template(inA, "infrastructureClassName: later"), false, "", []string{"spec.template.spec.infrastructureClassName: there is no InfrastructureClass"}},
		{"a template that the topology controller has completed", "HookgateMachineTemplate", "", template(ofOwned, "parameters: {size: small}"), false, "", nil},
		{"must be complete", "HookgateMachineTemplate", "", template(ofOwned, "parameters: {}"), false, "spec.template.spec.parameters.size: Required value", nil},
		{"a template of a user warns", "HookgateMachineTemplate", "", template(ofAcme, "parameters: {size: huge, disk: 1000}"), false, "", []string{"parameters.disk: Invalid value", "parameters.size: Unsupported value"}},
		{"parameters of a template are an object too", "HookgateMachineTemplate", "", template(inA, "parameters: text"), false, "spec.template.spec.parameters: Invalid value: must be a JSON object", nil},
		{"labels are labels", "HookgateMachineTemplate", "", "{" + inA + "spec: {template: {metadata: {labels: {a: 'b c'}}, spec: {}}}}", false, "spec.template.metadata.labels: Invalid value", nil},
		{"a template stays", "HookgateMachineTemplate", template(inA, "parameters: {size: small}"), template(inA, "parameters: {size: large}"), false, "spec.template.spec: Forbidden: must not change: make another HookgateMachineTemplate", nil},
		{"the dry run of a user too", "HookgateMachineTemplate", template(inA, "parameters: {size: small}"), template(inA, "parameters: {size: large}"), true, "spec.template.spec: Forbidden", nil},
		{"the mark alone is not enough", "HookgateMachineTemplate", template(marked, "parameters: {size: small}"), template(marked, "parameters: {size: large}"), false, "spec.template.spec: Forbidden", nil},
		{"the topology controller may ask", "HookgateMachineTemplate", template(marked, "parameters: {size: small}"), template(marked, "parameters: {size: large}"), true, "", nil},
		{"about templates of clusters", "HookgateClusterTemplate", template(marked, "infrastructureClassName: acme"), template(marked, "infrastructureClassName: composed"), true, "", nil},
		{"and about templates of pools", "HookgateMachinePoolTemplate", template(marked, "instanceManagement: Group"), template(marked, ""), true, "", nil},
		{"a template of pools stays", "HookgateMachinePoolTemplate", template(inA, "instanceManagement: Group"), template(inA, ""), false, "spec.template.spec: Forbidden", nil},
		{"a template of clusters stays", "HookgateClusterTemplate", template(inA, "infrastructureClassName: acme"), template(inA, "infrastructureClassName: composed"), false, "spec.template.spec: Forbidden", nil},
		{"metadata in a template may change, as in Cluster API's own", "HookgateMachineTemplate", template(inA, "parameters: {size: small}"), "{" + inA + "spec: {template: {metadata: {labels: {a: b}}, spec: {parameters: {size: small}}}}}", false, "", nil},
		{"a template written in another order is the same", "HookgateMachineTemplate", template(inA, "parameters: {size: small, disk: 1.0}"), template(inA, "parameters: {disk: 1, size: small}"), false, "", nil},

		{"a class", "InfrastructureClass", "", "{metadata: {name: o}, spec: {extensionRef: {name: acme}, defaultParameters: {cluster: {any: 1}}, allowedNamespaces: {selector: {}}}}", false, "", nil},
		{"with a selector that is none", "InfrastructureClass", "", "{metadata: {name: o}, spec: {extensionRef: {name: acme}, allowedNamespaces: {selector: {matchExpressions: [{key: a, operator: Is}]}}}}", false, "spec.allowedNamespaces.selector.matchExpressions[0].operator: Invalid value", nil},
		{"with defaults that are no object", "InfrastructureClass", "", "{metadata: {name: o}, spec: {extensionRef: {name: acme}, defaultParameters: {machine: [1]}}}", false, "spec.defaultParameters.machine: Invalid value: must be a JSON object", nil},
		{"with defaults that the extension does not take", "InfrastructureClass", "{metadata: {name: o}, spec: {extensionRef: {name: acme}}}", "{metadata: {name: o}, spec: {extensionRef: {name: acme}, defaultParameters: {machine: {disk: 1000}}}, status: {providerIDPrefix: x, schemas: {machine: " + machineSchema + "}}}", false, "spec.defaultParameters.machine.disk: Invalid value", nil},
		{"with defaults that are not complete", "InfrastructureClass", "{metadata: {name: o}, spec: {extensionRef: {name: acme}}}", "{metadata: {name: o}, spec: {extensionRef: {name: acme}, defaultParameters: {machine: {disk: 100}}}, status: {providerIDPrefix: x, schemas: {machine: " + machineSchema + "}}}", false, "", nil},
		{"whose spec stays", "InfrastructureClass", "{metadata: {name: o}, spec: {extensionRef: {name: acme}, defaultParameters: {machine: [1]}}}", "{metadata: {name: o, labels: {a: b}}, spec: {extensionRef: {name: acme}, defaultParameters: {machine: [1]}}}", false, "", nil},
	}
	h := handler(t, installed(t))
	for _, test := range tests {
		t.Run(test.kind+" "+test.reason, func(t *testing.T) {
			got := ask(t, h, test.kind, test.old, test.object, test.dryRun)
			message := ""
			if got.Result != nil {
				message = got.Result.Message
			}
			if got.Allowed != (test.want == "") || !strings.Contains(message, test.want) {
				t.Errorf("allowed %t: %q, want %q", got.Allowed, message, test.want)
			}
			if len(got.Warnings) != len(test.warnings) {
				t.Fatalf("warnings %q, want %q", got.Warnings, test.warnings)
			}
			for i, want := range test.warnings {
				if !strings.Contains(got.Warnings[i], want) {
					t.Errorf("warning %q, want %q", got.Warnings[i], want)
				}
			}
		})
	}
}

// An API server that does not answer must not keep objects from being written: the controllers check them again.
func TestUnreadableObjectsBlockNothing(t *testing.T) {
	log := &bytes.Buffer{}
	h := New(Config{Reader: &store{err: errors.New("connection refused")}, Schemas: parameters.NewCache(), Logger: slog.New(slog.NewTextHandler(log, nil))})
	got := ask(t, h, "HookgateMachine", "", "{"+ofAcme+"spec: {parameters: {size: huge}}}", false)
	if !got.Allowed || len(got.Warnings) > 0 {
		t.Errorf("allowed %t, warnings %q, %v", got.Allowed, got.Warnings, got.Result)
	}
	if !strings.Contains(log.String(), "connection refused") {
		t.Errorf("logged %q", log)
	}
}

// The manifest registers each webhook at its path, and the kinds that have one.
func TestManifestRegistersAllWebhooks(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "webhook", "infrastructure", "webhooks.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := yaml.UnmarshalStrict(text, config); err != nil {
		t.Fatal(err)
	}
	got, want := map[string]string{}, map[string]string{}
	for _, w := range config.Webhooks {
		got[w.Rules[0].Resources[0]] = *w.ClientConfig.Service.Path
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "deploy", "crd", "infrastructure", "*_*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if text, err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, definition); err != nil {
			t.Fatal(err)
		}
		want[definition.Spec.Names.Plural] = Path(definition.Spec.Names.Kind)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-definitions +webhooks\n%s", diff)
	}
	h := handler(t, installed(t))
	for _, path := range got {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader("{")))
		if w.Code == http.StatusNotFound {
			t.Errorf("nothing answers at %s", path)
		}
	}
}

// TestManyProblemsAreRefusedSoon checks that the labels of a template, which a tenant writes, cost a refusal memory, and
// thus time, by their number and not by its square, also where the old state has the same problems.
func TestManyProblemsAreRefusedSoon(t *testing.T) {
	h := handler(t, installed(t))
	template := func(value string) string {
		var b strings.Builder
		b.WriteString("{metadata: {name: o, namespace: a}, spec: {template: {metadata: {labels: {")
		for i := range 5000 {
			fmt.Fprintf(&b, "-%d: %s,", i, value)
		}
		b.WriteString("}}, spec: {}}}}")
		return b.String()
	}
	for old, allowed := range map[string]bool{"": false, template("b"): true} {
		object := template("a")
		var got *admissionv1.AdmissionResponse
		alloctest.Bound{Base: 256 << 20}.Check(t, 0, func() { got = ask(t, h, "HookgateMachineTemplate", old, object, false) })
		if text := got.Result.Message; got.Allowed != allowed || len(text) > 64<<10 {
			t.Errorf("after %d bytes: allowed %t, %d bytes of text", len(old), got.Allowed, len(text))
		}
	}
}
