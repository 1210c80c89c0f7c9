// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionconfig

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/alloctest"
)

// checkErrors checks that every error says where it is, and not too much.
func checkErrors(t *testing.T, errs field.ErrorList, size int) {
	t.Helper()
	for _, err := range errs {
		if err.Field == "" || len(err.Error()) > 64<<10+4*size {
			t.Errorf("field %q: an error of %d bytes", err.Field, len(err.Error()))
		}
	}
}

// FuzzExtensionConfig reads ExtensionConfigs, and the handlers in their status.
func FuzzExtensionConfig(f *testing.F) {
	for _, rest := range []string{
		`"spec":{"clientConfig":{"url":"https://acme.example:8443/x"},"namespaceSelector":{"matchLabels":{"a":"b"}},"settings":{"a":"b"}}`,
		`"spec":{"clientConfig":{"service":{"name":"s","namespace":"n","port":8443,"path":"/p"},"caBundle":"LS0tLS1CRUdJTg=="}}`,
		`"spec":{"clientConfig":{"url":"https://[::1]:1/%41"}},"status":{"handlers":[{"name":"v.acme","requestHook":{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","hook":"GeneratePatches"},"timeoutSeconds":5,"failurePolicy":"Ignore"}]}`,
	} {
		f.Add([]byte(`{"metadata":{"name":"acme"},` + rest + `}`))
	}
	hooks := catalog.New()
	memory := alloctest.Bound{Base: 1 << 20, PerByte: 1 << 10}
	f.Fuzz(func(t *testing.T, text []byte) {
		config := &runtimev1.ExtensionConfig{}
		if json.Unmarshal(text, config) != nil {
			return
		}
		for _, convert := range []func(*runtimev1.ExtensionConfig) (Extension, field.ErrorList){Convert, ConvertLocal} {
			var errs field.ErrorList
			memory.Check(t, len(text), func() { _, errs = convert(config) })
			checkErrors(t, errs, len(text))
		}
		memory.Check(t, len(text), func() {
			_, _, _ = LastKnownHandlers(config, hooks)
			_, _ = HookVersions(config, hooks)
		})
	})
}
