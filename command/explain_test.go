// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
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

	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/test/certificates"
)

// explainedManifests returns manifests of a chain of two handlers of an extension, and of handlers of others that are
// not called. Without an extension, status has the handlers.
func explainedManifests(url string, ca []byte, status string) string {
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

const acmeStatus = `status:
  handlers:
  - {name: image.acme, requestHook: {apiVersion: ` + hook.APIVersion + `, hook: GeneratePatches}, timeoutSeconds: 10, failurePolicy: Fail}
  - {name: proxy.acme, requestHook: {apiVersion: ` + hook.APIVersion + `, hook: GeneratePatches}, timeoutSeconds: 20, failurePolicy: Fail}
  - {name: check.acme, requestHook: {apiVersion: ` + hook.APIVersion + `, hook: BeforeClusterCreate}, timeoutSeconds: 10, failurePolicy: Fail}
`

const blueCluster = `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c, namespace: teams, labels: {tier: gold}}
`

const patchesRequest = `items:
- uid: "1"
  holderReference: {apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, namespace: teams, name: c, fieldPath: spec.x}
  object: {apiVersion: x/v1, kind: X, spec: {}}
`

// newPatcher starts an extension whose handlers image and proxy patch with what they are given, and returns its manifests.
func newPatcher(t *testing.T, image, proxy string) string {
	t.Helper()
	pair := certificates.New(t)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := ""
		switch path.Base(r.URL.Path) {
		case "discovery":
			handler := func(name, hookName string) string {
				return `{"name":"` + name + `","requestHook":{"apiVersion":"` + hook.APIVersion + `","hook":"` + hookName + `"},"timeoutSeconds":10,"failurePolicy":"Fail"}`
			}
			answer = reply("Discovery", `"status":"Success","handlers":[`+handler("image", "GeneratePatches")+`,`+handler("proxy", "GeneratePatches")+
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
	return explainedManifests(s.URL, pair.CAPEM, "")
}

func patchReply(patch string) string {
	return reply("GeneratePatches", `"status":"Success","items":[{"uid":"1","patchType":"JSONMergePatch","patch":"`+encoded(patch)+`"}]`)
}

// manifestDir returns a directory with manifests.
func manifestDir(t *testing.T, manifests string) string {
	t.Helper()
	return filepath.Dir(writeFile(t, "manifests.yaml", manifests))
}

// Without a gateway, the handlers are those of the status, and with --call those of the extensions.
func TestExplainDirectory(t *testing.T) {
	known := manifestDir(t, explainedManifests("https://127.0.0.1:1", certificates.New(t).CAPEM, acmeStatus))
	unknown := manifestDir(t, explainedManifests("https://127.0.0.1:1", certificates.New(t).CAPEM, ""))
	live := manifestDir(t, newPatcher(t, patchReply(`{"spec":{"image":"a"}}`), patchReply(`{"spec":{"proxy":"b"}}`)))
	cluster, request := writeFile(t, "cluster.yaml", blueCluster), writeFile(t, "request.yaml", patchesRequest)
	audits := manifestDir(t, "apiVersion: hookgate.dev/v1alpha1\nkind: HookRule\nmetadata: {name: small}\n"+
		"spec: {hook: ValidateTopology, action: Audit, validations: [{if: 'true', message: '\"too large\"'}]}\n")
	for name, tt := range map[string]struct {
		args []string
		code int
		want string // of stderr
	}{
		"audits":    {[]string{"ValidateTopology", "-f", request, "--extension-configs", audits, "--call"}, cmdline.ExitDone, ""},
		"lifecycle": {[]string{"BeforeClusterCreate", "-f", cluster, "--extension-configs", known}, cmdline.ExitDone, ""},
		"chain":     {[]string{"GeneratePatches", "-f", cluster, "--extension-configs", known}, cmdline.ExitDone, ""},
		"undiscovered": {
			[]string{"BeforeClusterCreate", "-f", cluster, "--extension-configs", unknown}, cmdline.ExitFailed,
			"hookgate: explain BeforeClusterCreate: the call fails with NotReady\n",
		},
		"called": {[]string{"GeneratePatches", "-f", request, "--extension-configs", live, "--call"}, cmdline.ExitDone,
			"ExtensionConfig \"red\": discover handlers: connection refused\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := hookgate(t, "", append([]string{"explain"}, tt.args...)...)
			if got.code != tt.code || got.errOut != tt.want {
				t.Errorf("exit status %d, want %d: %q", got.code, tt.code, got.errOut)
			}
			golden(t, "explain/"+name+".table", got.out)
			for line := range strings.SplitSeq(got.out, "\n") {
				if len(line) > explanationWidth {
					t.Errorf("%d columns: %s", len(line), line)
				}
			}
		})
	}
}

// A gateway explains what it would do, and calls with --call only.
func TestExplainAsksAGateway(t *testing.T) {
	g := newClusterGateway(t, newPatcher(t, patchReply(`{"spec":{"image":"a"}}`), patchReply(`{"metadata":{"name":"ignored"}}`)))
	request := writeFile(t, "request.yaml", patchesRequest)
	args := []string{"explain", "GeneratePatches", "-f", request, "--kubeconfig", g.kubeconfig, "--ca", g.ca, "-o", "json"}
	for _, called := range []bool{false, true} {
		if called {
			args = append(args, "--call")
		}
		got := hookgate(t, "", args...)
		x := decodeInto(t, got.out, &gateway.Explanation{})
		if got.code != cmdline.ExitDone || len(x.Handlers) != 3 || x.Handlers[0].Name != "platform" || len(x.Handlers[0].Steps) != 3 || (x.Answer != nil) != called {
			t.Fatalf("call %t: exit status %d, %s\n%s", called, got.code, got.errOut, got.out)
		}
		if !called {
			continue
		}
		objects, _ := json.Marshal(x.Answer.Objects)
		if want := `[{"uid":"1","name":"Cluster teams/c spec.x","object":{"apiVersion":"x/v1","kind":"X","spec":{"image":"a"}}}]`; string(objects) != want {
			t.Errorf("after the chain: %s, want %s", objects, want)
		}
	}
}

// A server that does not explain is not called instead.
func TestExplainUsage(t *testing.T) {
	f := newFakeServer(t, map[string]fakeReply{"BeforeClusterCreate": {body: reply("BeforeClusterCreate", `"status":"Success"`)}})
	dir, cluster := manifestDir(t, acmeManifest), writeFile(t, "cluster.yaml", blueCluster)
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"Older":         {[]string{"BeforeClusterCreate", "-f", cluster, "--server", f.http.URL, "--ca", f.caFile}, cmdline.ExitFailed, "Does the gateway explain calls?"},
		"GRPC":          {[]string{"BeforeClusterCreate", "-f", cluster, "--server", "grpc://" + f.grpc}, cmdline.ExitUsage, "calls are explained over HTTPS"},
		"NoHook":        {[]string{"BeforeClusterCreat", "-f", cluster}, cmdline.ExitUsage, `no hook "BeforeClusterCreat", did you mean BeforeClusterCreate?`},
		"NoFile":        {[]string{"BeforeClusterCreate"}, cmdline.ExitUsage, "-f is required: a file with the request of BeforeClusterCreate, or with a Cluster"},
		"Discovery":     {[]string{"Discovery", "-f", cluster}, cmdline.ExitUsage, "Discovery is answered by the gateway itself"},
		"NoCluster":     {[]string{"UpdateMachine", "-f", cluster, "--extension-configs", dir}, cmdline.ExitUsage, "a Cluster is not enough for a request of UpdateMachine: give the request"},
		"CallOfCluster": {[]string{"GeneratePatches", "-f", cluster, "--extension-configs", dir, "--call"}, cmdline.ExitUsage, "handlers of GeneratePatches are called with a whole request"},
		"Acts":          {[]string{"UpdateMachine", "-f", writeFile(t, "r.yaml", "desired: {machine: {kind: Machine}}\n"), "--extension-configs", dir, "--call"}, cmdline.ExitFailed, "handlers of UpdateMachine act"},
		"Both":          {[]string{"BeforeClusterCreate", "-f", cluster, "--extension-configs", dir, "--server", "https://127.0.0.1:1"}, cmdline.ExitUsage, "--extension-configs and --server"},
		"NoDirectory":   {[]string{"BeforeClusterCreate", "-f", cluster, "--extension-configs", filepath.Join(dir, "none")}, cmdline.ExitFailed, "read directory"},
		"NotARequest":   {[]string{"BeforeClusterCreate", "-f", writeFile(t, "r.yaml", "kind: X\n"), "--extension-configs", dir}, cmdline.ExitFailed, "it is no BeforeClusterCreateRequest"},
	} {
		t.Run(name, func(t *testing.T) {
			got := hookgate(t, "", append([]string{"explain"}, tt.args...)...)
			if got.code != tt.code || !strings.Contains(got.errOut, tt.want) {
				t.Errorf("exit status %d, want %d: %q, want %q", got.code, tt.code, got.errOut, tt.want)
			}
		})
	}
	if path, _, _ := f.asked(); path != "" {
		t.Errorf("%s was called", path)
	}
}
