// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

// BenchmarkConversion is a list of 2,000 ExtensionConfigs with 10 handlers each, which the API server sends as one
// request.
func BenchmarkConversion(b *testing.B) {
	h := handler(b)
	review := &apiextensionsv1.ConversionReview{Request: &apiextensionsv1.ConversionRequest{UID: "u", DesiredAPIVersion: group + "/v1alpha1"}}
	for i := range 2000 {
		c := &runtimev1.ExtensionConfig{}
		c.APIVersion, c.Kind, c.Name = group+"/v1beta2", "ExtensionConfig", fmt.Sprintf("config-%d", i)
		c.Spec.ClientConfig.URL = "https://extension.example.com"
		for j := range 10 {
			c.Status.Handlers = append(c.Status.Handlers, runtimev1.ExtensionHandler{
				Name: fmt.Sprintf("handler-%d.%s", j, c.Name), TimeoutSeconds: 10, FailurePolicy: runtimev1.FailurePolicyFail,
				RequestHook: runtimev1.GroupVersionHook{APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: "BeforeClusterCreate"},
			})
		}
		review.Request.Objects = append(review.Request.Objects, runtime.RawExtension{Raw: encode(b, c)})
	}
	body := encode(b, review)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, ConvertPath, bytes.NewReader(body)))
		if w.Code != http.StatusOK || w.Body.Len() < len(body)/2 {
			b.Fatalf("answered %d with %d bytes", w.Code, w.Body.Len())
		}
	}
}
