// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/alloctest"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
)

// admit asks a webhook about a new object, or about an update if old is not nil.
func admit(t *testing.T, path string, old, object any) *admissionv1.AdmissionResponse {
	t.Helper()
	return admitBy(t, handler(t), path, old, object)
}

func admitBy(t *testing.T, h http.Handler, path string, old, object any) *admissionv1.AdmissionResponse {
	t.Helper()
	review := admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}}
	review.Request = &admissionv1.AdmissionRequest{UID: "u", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: encode(t, object)}}
	if old != nil {
		review.Request.Operation, review.Request.OldObject = admissionv1.Update, runtime.RawExtension{Raw: encode(t, old)}
	}
	return answerTo(t, h, path, review)
}

func answerTo(t *testing.T, h http.Handler, path string, review admissionv1.AdmissionReview) *admissionv1.AdmissionResponse {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(encode(t, review)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	answer := admissionv1.AdmissionReview{}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Response == nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return answer.Response
}

func configWith(change func(*runtimev1.ExtensionConfig)) *runtimev1.ExtensionConfig {
	c := &runtimev1.ExtensionConfig{}
	c.APIVersion, c.Kind, c.Name = group+"/v1beta2", "ExtensionConfig", "acme"
	c.Spec.ClientConfig.URL, c.Spec.NamespaceSelector = "https://acme.example", &metav1.LabelSelector{}
	change(c)
	return c
}

func TestRefusalsOfExtensionConfigs(t *testing.T) {
	bad := func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.URL = "http://acme.example" }
	good := func(*runtimev1.ExtensionConfig) {}
	own := func(c *runtimev1.ExtensionConfig) {
		c.Spec.ClientConfig.URL = "https://GATEWAY.system.svc.cluster.local/x"
	}
	with := func(changes ...func(*runtimev1.ExtensionConfig)) *runtimev1.ExtensionConfig {
		return configWith(func(c *runtimev1.ExtensionConfig) {
			for _, f := range changes {
				f(c)
			}
		})
	}
	label := func(c *runtimev1.ExtensionConfig) { c.Labels = map[string]string{"a": "b"} }
	deleted := func(c *runtimev1.ExtensionConfig) { now := metav1.Now(); c.DeletionTimestamp = &now }
	undefaulted := func(c *runtimev1.ExtensionConfig) { c.Spec.NamespaceSelector = nil }
	const refusal = `ExtensionConfig.runtime.hookgate.dev "acme" is invalid: spec.clientConfig`
	for name, tc := range map[string]struct {
		old, object *runtimev1.ExtensionConfig
		want        string // a part of the refusal; empty if it is allowed
	}{
		"CreateGood":        {nil, with(good), ""},
		"CreateBad":         {nil, with(bad), refusal + `.url: Invalid value: "http://acme.example": must begin with https://, not with "http"`},
		"CreateOwn":         {nil, with(own), refusal + ": Forbidden: https://GATEWAY.system.svc.cluster.local/x is this gateway, which would call itself endlessly; give the address of the extension instead"},
		"UpdateToBad":       {with(good), with(bad), refusal + ".url: Invalid value"},
		"UpdateToOwn":       {with(good), with(own), refusal + ": Forbidden"},
		"UpdateStaysBad":    {with(bad), with(bad, label), ""},
		"UpdateDefaultsBad": {with(bad, undefaulted), with(bad), ""},
		"UpdateOfDeleted":   {with(good), with(bad, deleted), ""},
		"UpdateOfBad":       {with(bad), with(bad, func(c *runtimev1.ExtensionConfig) { c.Spec.Settings = map[string]string{"a": "b"} }), refusal + ".url: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			var old any
			if tc.old != nil {
				old = tc.old
			}
			got := admit(t, ValidatePath(group), old, tc.object)
			if got.Allowed != (tc.want == "") || tc.want != "" && !strings.HasPrefix(got.Result.Message, tc.want) {
				t.Errorf("allowed %t, %+v, want %q", got.Allowed, got.Result, tc.want)
			}
		})
	}
}

func TestDefaultsOfExtensionConfigs(t *testing.T) {
	port := int32(8443)
	for name, tc := range map[string]struct {
		change func(*runtimev1.ExtensionConfig)
		want   []string // of the patch
	}{
		"Nothing":  {func(*runtimev1.ExtensionConfig) {}, nil},
		"Selector": {func(c *runtimev1.ExtensionConfig) { c.Spec.NamespaceSelector = nil }, []string{`"path":"/spec/namespaceSelector","value":{}`}},
		"Port": {func(c *runtimev1.ExtensionConfig) {
			c.Spec.ClientConfig = runtimev1.ClientConfig{Service: runtimev1.ServiceReference{Name: "s", Namespace: "n"}}
		}, []string{`"path":"/spec/clientConfig/service/port","value":443`}},
		"OtherPort": {func(c *runtimev1.ExtensionConfig) {
			c.Spec.ClientConfig = runtimev1.ClientConfig{Service: runtimev1.ServiceReference{Name: "s", Namespace: "n", Port: &port}}
		}, nil},
	} {
		got := admit(t, MutatePath(group), nil, configWith(tc.change))
		patch := string(got.Patch)
		if !got.Allowed || slices.ContainsFunc(tc.want, func(s string) bool { return !strings.Contains(patch, s) }) || tc.want == nil && strings.Contains(patch, "/spec") {
			t.Errorf("%s: allowed %t, patch %s, want %q", name, got.Allowed, patch, tc.want)
		}
	}
}

func TestWarnings(t *testing.T) {
	annotated := func(key, value string) func(*runtimev1.ExtensionConfig) {
		return func(c *runtimev1.ExtensionConfig) { c.Annotations = map[string]string{key: value} }
	}
	at := func(url string) func(*runtimev1.ExtensionConfig) {
		return func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.URL = url }
	}
	const inject = runtimev1.InjectCAFromSecretAnnotation
	for name, tc := range map[string]struct {
		change func(*runtimev1.ExtensionConfig)
		want   string // a part of the only warning; empty for none
	}{
		"Nothing":     {at("https://acme.example"), ""},
		"Paused":      {annotated(clusterv1.PausedAnnotation, ""), "the extension is not discovered until the annotation is gone"},
		"Inject":      {annotated(inject, "n/s"), ""},
		"InjectShort": {annotated(inject, "s"), `"s" is not of the form <namespace>/<name>, so no CA is injected`},
		"InjectLong":  {annotated(inject, "n/s/x"), "is not of the form <namespace>/<name>"},
		"InjectCut":   {annotated(inject, strings.Repeat("x", 1<<10)), `x…" is not of the form <namespace>/<name>`},
		"Localhost":   {at("https://LocalHost."), "localhost is the gateway's own Pod"},
		"Loopback":    {at("https://[::ffff:127.0.0.1]:1"), "is the gateway's own Pod"},
		"LinkLocal":   {at("https://169.254.169.254"), "169.254.169.254 is "},
		"Service":     {at("https://s.n.svc.cluster.local"), "is a Service of a cluster: name a Service of this cluster in spec.clientConfig.service"},
		"NoCA": {func(c *runtimev1.ExtensionConfig) {
			c.Spec.ClientConfig = runtimev1.ClientConfig{Service: runtimev1.ServiceReference{Name: "s", Namespace: "n"}}
		}, "spec.clientConfig.caBundle: is not set"},
	} {
		config := configWith(tc.change)
		got := warnings(nil, config)
		if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
		if again := warnings(config, config); len(again) > 0 {
			t.Errorf("%s: an update that changes nothing warns again: %q", name, again)
		}
	}
	both := configWith(annotated(inject, "n/s"))
	both.Spec.ClientConfig.CABundle = []byte("x")
	bundled := configWith(func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.CABundle = []byte("x") })
	injecting := configWith(annotated(inject, "n/s"))
	for name, tc := range map[string]struct {
		old  *runtimev1.ExtensionConfig
		want int
	}{"New": {nil, 1}, "AnnotationAdded": {bundled, 1}, "Injected": {injecting, 0}, "Same": {both, 0}} {
		if got := warnings(tc.old, both); len(got) != tc.want {
			t.Errorf("%s: a CA bundle beside an injection: got %q", name, got)
		}
	}
}

func TestRefusalsOfExtensionPolicies(t *testing.T) {
	with := func(change func(*v1alpha1.ExtensionPolicy)) *v1alpha1.ExtensionPolicy {
		p := &v1alpha1.ExtensionPolicy{}
		p.APIVersion, p.Kind, p.Name = "hookgate.dev/v1alpha1", "ExtensionPolicy", "p"
		p.Spec.TargetRef.Name, p.Spec.Protocol = "acme", v1alpha1.ProtocolREST
		change(p)
		return p
	}
	seconds := func(n int32) *v1alpha1.ExtensionPolicy {
		return with(func(p *v1alpha1.ExtensionPolicy) { p.Spec.TimeoutSeconds = &n })
	}
	deleted := seconds(31)
	now := metav1.Now()
	deleted.DeletionTimestamp = &now
	for name, tc := range map[string]struct {
		old, object *v1alpha1.ExtensionPolicy
		want        string
		warned      bool
	}{
		"29":            {nil, seconds(29), "", false},
		"30":            {nil, seconds(30), "", true},
		"31":            {nil, seconds(31), `ExtensionPolicy.hookgate.dev "p" is invalid: spec.timeoutSeconds: Invalid value: 31: must be between 1 and 30`, true},
		"UpdateTo31":    {seconds(29), seconds(31), `ExtensionPolicy.hookgate.dev "p" is invalid: spec.timeoutSeconds`, true},
		"UpdateStays31": {seconds(31), seconds(31), "", false},
		"Deleted":       {seconds(29), deleted, "", false},
		"Expression": {nil, with(func(p *v1alpha1.ExtensionPolicy) {
			p.Spec.MatchConditions = []v1alpha1.MatchCondition{{Name: "a", Expression: "nobody"}}
		}), `ExtensionPolicy.hookgate.dev "p" is invalid: spec.matchConditions[0].expression: Invalid value: `, false},
		"Misspelled": {nil, with(func(p *v1alpha1.ExtensionPolicy) {
			p.Spec.MatchConditions = []v1alpha1.MatchCondition{{Name: "a", Expression: "request.nmespace == 'a'"}}
		}), `ExtensionPolicy.hookgate.dev "p" is invalid: spec.matchConditions[0].expression: Invalid value: does not suit the requests of ` +
			"any hook; in a request of AfterClusterUpgrade: line 1, column 8: undefined field 'nmespace'", false},
		"OfOneHook": {nil, with(func(p *v1alpha1.ExtensionPolicy) {
			p.Spec.MatchConditions = []v1alpha1.MatchCondition{{Name: "a", Expression: "request.items.all(i, i.uid != '')"}}
		}), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			var old any
			if tc.old != nil {
				old = tc.old
			}
			got := admit(t, OwnPath(extensionpolicy.Kind), old, tc.object)
			if got.Allowed != (tc.want == "") || tc.want != "" && !strings.HasPrefix(got.Result.Message, tc.want) || (len(got.Warnings) > 0) != tc.warned {
				t.Errorf("allowed %t, %+v, warnings %q", got.Allowed, got.Result, got.Warnings)
			}
		})
	}
}

// TestManyProblemsAreRefusedSoon checks that a refusal takes memory, and thus time, by the size of the object and not by
// its square, and that its text is short.
func TestManyProblemsAreRefusedSoon(t *testing.T) {
	config := configWith(func(c *runtimev1.ExtensionConfig) {
		for range 20_000 {
			c.Spec.NamespaceSelector.MatchExpressions = append(c.Spec.NamespaceSelector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: "a", Operator: "Is"})
		}
	})
	var got *admissionv1.AdmissionResponse
	alloctest.Bound{Base: 256 << 20}.Check(t, 0, func() { got = admit(t, ValidatePath(group), nil, config) })
	if text := got.Result.Message; got.Allowed || len(text) > 64<<10 || !strings.Contains(text, "more problems)") {
		t.Errorf("allowed %t, refused with %d bytes", got.Allowed, len(text))
	}
}

// admitted is an object that is to be admitted, in the place of old unless that is nil. want is the beginning of the
// refusal; empty if it is allowed.
type admitted[T comparable] struct {
	old, object T
	want        string
	warnings    []string
}

// checkAdmissions admits objects, by the reasons for what becomes of them.
func checkAdmissions[T comparable](t *testing.T, h http.Handler, path string, admissions map[string]admitted[T]) {
	t.Helper()
	for reason, tt := range admissions {
		t.Run(reason, func(t *testing.T) {
			var old any
			if tt.old != *new(T) {
				old = tt.old
			}
			got := admitBy(t, h, path, old, tt.object)
			if got.Allowed != (tt.want == "") || tt.want != "" && !strings.HasPrefix(got.Result.Message, tt.want) || !slices.Equal(got.Warnings, tt.warnings) {
				t.Errorf("allowed %t, %+v, warnings %q", got.Allowed, got.Result, got.Warnings)
			}
		})
	}
}
