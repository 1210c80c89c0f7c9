// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/hookgate/hookgate/internal/base/alloctest"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
)

// ask posts a body to a webhook, and returns the body of the answer.
func ask(t *testing.T, h http.Handler, path string, body []byte) []byte {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	// Compiling the conditions of a policy takes some MiB, however short they are.
	alloctest.Bound{Base: 64 << 20, PerByte: 64 << 10}.Check(t, len(body), func() { h.ServeHTTP(w, r) })
	switch w.Code {
	case http.StatusOK, http.StatusBadRequest:
	default:
		t.Errorf("%s answers %d: %s", path, w.Code, w.Body)
	}
	return w.Body.Bytes()
}

// FuzzAdmission sends AdmissionReviews to every webhook. Whatever is wrong with one, the answer is a review, and says
// why if it does not allow the object.
func FuzzAdmission(f *testing.F) {
	review := func(object, more string) []byte {
		return []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE","object":` + object + more + `}}`)
	}
	const (
		config = `{"kind":"ExtensionConfig","apiVersion":"runtime.hookgate.dev/v1beta2","metadata":{"name":"acme"},"spec":{"clientConfig":{"url":"https://acme.example"}},"status":{"handlers":[{"name":"v.acme","requestHook":{"apiVersion":"a/b","hook":"c"}}]}}`
		policy = `{"kind":"ExtensionPolicy","apiVersion":"hookgate.dev/v1alpha1","metadata":{"name":"p"},"spec":{"targetRef":{"name":"acme"},"timeoutSeconds":30,"matchConditions":[{"name":"a","expression":"request.a == 1"}]}}`
		chain  = `{"kind":"HandlerChain","apiVersion":"hookgate.dev/v1alpha1","metadata":{"name":"c"},"spec":{"hook":"CanUpdateMachine","steps":[{"handler":"a.acme","allow":["/machine"]}]}}`
		rule   = `{"kind":"HookRule","apiVersion":"hookgate.dev/v1alpha1","metadata":{"name":"r"},"spec":{"hook":"BeforeClusterUpgrade","hold":[{"unless":"request.a == 1","message":"'a'","retryAfterSeconds":3}]}}`
		moves  = `{"kind":"ExtensionRollout","apiVersion":"hookgate.dev/v1alpha1","metadata":{"name":"r"},"spec":{"stable":"a","candidate":"b","approved":["a/b"]}}`
	)
	for _, object := range []string{config, policy, chain, rule, moves, `{}`, `null`, `[]`, `{"kind":"ExtensionConfig","apiVersion":"runtime.hookgate.dev/v1alpha1"}`} {
		f.Add(review(object, ""))
		f.Add(review(object, `,"oldObject":`+config))
	}
	f.Add([]byte(`{`))
	h := handler(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{MutatePath(group), ValidatePath(group), OwnPath(extensionpolicy.Kind), OwnPath(handlerchain.Kind), OwnPath(hookrule.Kind), OwnPath(rollout.Kind)} {
			answer := admissionv1.AdmissionReview{}
			text := ask(t, h, path, body)
			if err := json.Unmarshal(text, &answer); err != nil || answer.Response == nil ||
				!answer.Response.Allowed && answer.Response.Result == nil {
				t.Errorf("%s answers %s: %v", path, text, err)
			}
		}
	})
}

// FuzzConversion sends ConversionReviews. Either all objects come back, or the answer says why not.
func FuzzConversion(f *testing.F) {
	for _, version := range []string{"v1alpha1", "v1beta2", "v9"} {
		f.Add([]byte(`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"runtime.hookgate.dev/` + version + `","objects":[` +
			`{"kind":"ExtensionConfig","apiVersion":"runtime.hookgate.dev/v1beta2","metadata":{"name":"a"},"spec":{"clientConfig":{"service":{"name":"s","namespace":"n","port":0}}},"status":{"conditions":[{"type":"Discovered"}]}},` +
			`{"kind":"ExtensionConfig","apiVersion":"runtime.hookgate.dev/v1alpha1","metadata":{"name":"b"},"spec":{"clientConfig":{"url":"","caBundle":"e30="},"settings":{"a":"b"}}}]}}`))
	}
	f.Add([]byte(`{"request":{"objects":[null,1,{}]}}`))
	h := handler(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		text := ask(t, h, ConvertPath, body)
		answer := apiextensionsv1.ConversionReview{}
		asked := apiextensionsv1.ConversionReview{}
		if json.Unmarshal(text, &answer) != nil || answer.Response == nil {
			return // a body that is no review, which is answered by text
		}
		if json.Unmarshal(body, &asked) != nil || asked.Request == nil {
			return
		}
		if answer.Response.Result.Status == "Success" && len(answer.Response.ConvertedObjects) != len(asked.Request.Objects) {
			t.Errorf("%d objects became %d", len(asked.Request.Objects), len(answer.Response.ConvertedObjects))
		}
	})
}
