// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/test/hookversions"
)

// withStatus returns an ExtensionConfig with one known handler, of a hook in that version.
func withStatus(version string, change ...func(*runtimev1.ExtensionConfig)) *runtimev1.ExtensionConfig {
	c := &runtimev1.ExtensionConfig{}
	c.APIVersion, c.Kind, c.Name = group+"/v1beta2", "ExtensionConfig", "acme"
	c.Spec.ClientConfig.URL = "https://acme.example"
	c.Spec.NamespaceSelector = &metav1.LabelSelector{}
	c.Status.Handlers = []runtimev1.ExtensionHandler{{Name: "a.acme", RequestHook: runtimev1.GroupVersionHook{APIVersion: hookversions.Group + "/" + version, Hook: hookversions.BeforeNodeDrain}}}
	for _, f := range change {
		f(c)
	}
	return c
}

// TestOutdatedHookVersions: only removed versions are refused, deprecated ones get a warning, whenever the API server
// passes it on.
func TestOutdatedHookVersions(t *testing.T) {
	h, err := New(Config{Group: group, Logger: slog.New(slog.DiscardHandler), Catalog: hookversions.New()})
	if err != nil {
		t.Fatal(err)
	}
	label := func(c *runtimev1.ExtensionConfig) { c.Labels = map[string]string{"a": "b"} }
	settings := func(c *runtimev1.ExtensionConfig) { c.Spec.Settings = map[string]string{"a": "b"} }
	url := func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.URL = "https://other.example" }
	paused := func(c *runtimev1.ExtensionConfig) {
		c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	}
	gone := func(c *runtimev1.ExtensionConfig) { now := metav1.Now(); c.DeletionTimestamp = &now }
	mutate, validate := MutatePath(group), ValidatePath(group)
	const removed, deprecated = "the gateway can call none of the handlers", "a.acme: hooks of hooks.test.hookgate.dev/v1alpha1 are deprecated"
	for name, tc := range map[string]struct {
		reason      string
		path        string
		old, object *runtimev1.ExtensionConfig
		refused     string
		warning     string
	}{
		"CreateRemoved":     {"no other webhook gets the status", mutate, nil, withStatus("v0alpha1"), removed, ""},
		"CreatePaused":      {"a paused one is not called", mutate, nil, withStatus("v0alpha1", paused), "", "were removed in release v0.3.0"},
		"CreateDeprecated":  {"it works, with a warning", mutate, nil, withStatus("v1alpha1"), "", deprecated},
		"CreateCurrent":     {"nothing to say", mutate, nil, withStatus("v1beta1"), "", ""},
		"CreateValidated":   {"it was said before", validate, nil, withStatus("v1alpha1"), "", ""},
		"MutateUpdate":      {"validation sees the status of an update", mutate, withStatus("v0alpha1"), withStatus("v0alpha1", settings), "", ""},
		"UpdateRemoved":     {"what stays cannot be called", validate, withStatus("v0alpha1"), withStatus("v0alpha1", settings), removed, ""},
		"UpdateElsewhere":   {"another extension may have others", validate, withStatus("v0alpha1"), withStatus("v0alpha1", url), "", ""},
		"UpdateLabel":       {"metadata can be changed always", validate, withStatus("v0alpha1"), withStatus("v0alpha1", label), "", ""},
		"UpdatePause":       {"one can be paused", validate, withStatus("v0alpha1"), withStatus("v0alpha1", paused), "", "were removed"},
		"UpdatePaused":      {"one that is paused passes", validate, withStatus("v0alpha1", paused), withStatus("v0alpha1", paused, settings), "", "were removed"},
		"UpdateGoing":       {"one can be deleted", validate, withStatus("v0alpha1"), withStatus("v0alpha1", gone, settings), "", ""},
		"UpdateDeprecated":  {"said with every change", validate, withStatus("v1alpha1"), withStatus("v1alpha1", settings), "", deprecated},
		"LabelDeprecated":   {"of metadata, too", validate, withStatus("v1alpha1"), withStatus("v1alpha1", label), "", deprecated},
		"ElsewhereOutdated": {"of another extension nothing is known", validate, withStatus("v1alpha1"), withStatus("v1alpha1", url), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			review := admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}}
			review.Request = &admissionv1.AdmissionRequest{UID: "u", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: encode(t, tc.object)}}
			if tc.old != nil {
				review.Request.Operation, review.Request.OldObject = admissionv1.Update, runtime.RawExtension{Raw: encode(t, tc.old)}
			}
			r := httptest.NewRequest(http.MethodPost, tc.path, bytes.NewReader(encode(t, review)))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			answer := admissionv1.AdmissionReview{}
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Response == nil {
				t.Fatalf("%d %s: %v", w.Code, w.Body, err)
			}
			message := ""
			if answer.Response.Result != nil {
				message = answer.Response.Result.Message
			}
			if answer.Response.Allowed != (tc.refused == "") || !strings.Contains(message, tc.refused) {
				t.Errorf("%s: allowed %t: %s", tc.reason, answer.Response.Allowed, message)
			}
			if warnings := strings.Join(answer.Response.Warnings, "\n"); !strings.Contains(warnings, tc.warning) || tc.warning == "" && strings.Contains(warnings, "status.handlers") {
				t.Errorf("%s: warnings %q, want %q", tc.reason, warnings, tc.warning)
			}
		})
	}
}
