// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package commandtest

import (
	"archive/zip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/test/certificates"
)

// DecodeInto decodes JSON into value, and returns it.
func DecodeInto[T any](t *testing.T, text string, value *T) *T {
	t.Helper()
	if err := json.Unmarshal([]byte(text), value); err != nil {
		t.Errorf("%v in %q", err, text)
	}
	return value
}

// Reply returns the JSON of the hook's answer, with members after kind and apiVersion.
func Reply(hookName, members string) string {
	h, _ := AllHooks.ByName(hookName)
	return `{"kind":"` + hookName + `Response","apiVersion":"` + h.APIVersion() + `",` + members + `}`
}

// ACluster is the member cluster of a request, as YAML.
const ACluster = "cluster: {apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: a, namespace: b}}\n"

// Encoded returns a patch as it is in JSON.
func Encoded(patch string) string { return base64.StdEncoding.EncodeToString([]byte(patch)) }

// PatchesRequest is a request of GeneratePatches for one object, as YAML.
const PatchesRequest = `items:
- uid: "1"
  holderReference: {apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, namespace: teams, name: c, fieldPath: spec.x}
  object: {apiVersion: x/v1, kind: X, spec: {}}
`

// NewPatcher starts an extension whose handlers image and proxy patch with what they are given, and returns its manifests.
func NewPatcher(t *testing.T, image, proxy string) string {
	t.Helper()
	pair := certificates.New(t)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := ""
		switch path.Base(r.URL.Path) {
		case "discovery":
			handler := func(name, hookName string) string {
				return `{"name":"` + name + `","requestHook":{"apiVersion":"` + hook.APIVersion + `","hook":"` + hookName + `"},"timeoutSeconds":10,"failurePolicy":"Fail"}`
			}
			answer = Reply("Discovery", `"status":"Success","handlers":[`+handler("image", "GeneratePatches")+`,`+handler("proxy", "GeneratePatches")+
				`,`+handler("check", "BeforeClusterCreate")+`]`)
		case "image":
			answer = image
		case "proxy":
			answer = proxy
		}
		_, _ = io.WriteString(w, answer)
	}))
	s.TLS = certificates.Server(t, pair)
	s.StartTLS()
	t.Cleanup(s.Close)
	return ExplainedManifests(s.URL, pair.CAPEM, "")
}

// PatchReply returns an answer to PatchesRequest with a merge patch.
func PatchReply(patch string) string {
	return Reply("GeneratePatches", `"status":"Success","items":[{"uid":"1","patchType":"JSONMergePatch","patch":"`+Encoded(patch)+`"}]`)
}

// ManifestDir returns a directory with manifests.
func ManifestDir(t *testing.T, manifests string) string {
	t.Helper()
	return filepath.Dir(WriteFile(t, "manifests.yaml", manifests))
}

// Offer is a handler in an answer to discovery.
func Offer(name, hookName string) string {
	return `{"name":"` + name + `","requestHook":{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","hook":"` + hookName + `"},"timeoutSeconds":10}`
}

// LintConfig is a manifest of an extension whose handlers are known.
const LintConfig = `apiVersion: runtime.cluster.x-k8s.io/v1beta2
kind: ExtensionConfig
metadata: {name: acme}
spec: {clientConfig: {url: "https://acme.example.com", caBundle: ""}}
status:
  handlers:
  - name: patch.acme
    requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: GeneratePatches}
`

// LintChain returns a chain with steps on lines of their own, from line 6.
func LintChain(name, hookName string, steps ...string) string {
	return "apiVersion: hookgate.dev/v1alpha1\nkind: HandlerChain\nmetadata: {name: " + name + "}\nspec:\n  hook: " + hookName + "\n  steps:\n  - {handler: " +
		strings.Join(steps, "}\n  - {handler: ") + "}\n"
}

// LintRule returns a rule that fails with an expression as its message, on line 7.
func LintRule(name, hookName, message string) string {
	return "apiVersion: hookgate.dev/v1alpha1\nkind: HookRule\nmetadata: {name: " + name + "}\nspec:\n  hook: " + hookName + "\n  fail:\n  - {if: 'true', message: '" + message + "'}\n"
}

// Unzip returns the files of an archive.
func Unzip(t *testing.T, path string) map[string]string {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = z.Close() }()
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(content)
	}
	return files
}

// ExplainedManifests returns manifests of a chain of two handlers of an extension, and of handlers of others that are
// not called. Without an extension, status has the handlers.
func ExplainedManifests(url string, ca []byte, status string) string {
	return fmt.Sprintf(`apiVersion: runtime.cluster.x-k8s.io/v1beta2
kind: ExtensionConfig
metadata: {name: acme}
spec: {clientConfig: {url: %q, caBundle: %s}}
%s
---
apiVersion: runtime.cluster.x-k8s.io/v1beta2
kind: ExtensionConfig
metadata: {name: red}
spec:
  clientConfig: {url: "https://127.0.0.1:1"}
  namespaceSelector: {matchLabels: {team: red}}
status:
  handlers:
  - {name: check.red, requestHook: {apiVersion: %[4]s, hook: BeforeClusterCreate}, timeoutSeconds: 5, failurePolicy: Ignore}
---
apiVersion: hookgate.dev/v1alpha1
kind: ExtensionPolicy
metadata: {name: acme-proxy}
spec:
  targetRef: {name: acme, handler: proxy}
  clusterAPIVersion: v1beta1
  matchConditions: [{name: has-items, expression: request.items.size() > 0}]
---
apiVersion: hookgate.dev/v1alpha1
kind: HandlerChain
metadata: {name: platform}
spec:
  hook: GeneratePatches
  steps:
  - handler: image.acme
  - handler: proxy.acme
  - {handler: cis.security, optional: true}
---
apiVersion: v1
kind: Namespace
metadata: {name: teams, labels: {team: blue}}
`, url, base64.StdEncoding.EncodeToString(ca), status, hook.APIVersion)
}
