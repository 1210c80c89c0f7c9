// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package commandtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/network/tunnel/tunneltest"
	"github.com/hookgate/hookgate/test/certificates"
)

// ClusterGateway is a gateway, run by hookgate serve, behind the Pod a of namespace hookgate-system.
type ClusterGateway struct {
	*tunneltest.Server
	Kubeconfig string
	CA         string
	Address    string // of the diagnostics
	log        *bytes.Buffer
}

// NewClusterGateway starts a gateway with the ExtensionConfigs in the manifests. Its certificate is for the Service.
func NewClusterGateway(t *testing.T, manifests string, podArgs ...string) *ClusterGateway {
	t.Helper()
	configs, certs := t.TempDir(), t.TempDir()
	pair := certificates.In(t, certs, "hookgate.hookgate-system.svc")
	if err := os.WriteFile(filepath.Join(configs, "manifests.yaml"), []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	out, log, done := make(Announced, 1), &bytes.Buffer{}, make(chan int)
	go func() {
		done <- Run(ctx, []string{"serve", "--extension-configs", configs, "--cert-dir", certs, "--http-address", "127.0.0.1:0",
			"--grpc-address", "127.0.0.1:0", "--diagnostics-address", "127.0.0.1:0"}, strings.NewReader(""), out, log,
			func(string) (string, bool) { return "", false })
	}()
	t.Cleanup(func() {
		stop()
		if code := <-done; code != cmdline.ExitDone {
			t.Errorf("the gateway ended with status %d: %s", code, log)
		}
	})
	addresses := regexp.MustCompile(`https=(\S+) grpc=(\S+) diagnostics=(\S+)`).FindStringSubmatch(<-out)
	for !isOK(t, "http://"+addresses[3]+"/readyz") {
		time.Sleep(10 * time.Millisecond) // until t's deadline
	}
	s := tunneltest.New(t,
		tunneltest.Pod("hookgate-system", "a", true, time.Hour, podArgs...),
		tunneltest.Pod("elsewhere", "b", false, time.Hour))
	s.Ports["9443"], s.Ports["9090"], s.Ports["8443"] = addresses[1], addresses[2], addresses[3]
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pair.CAPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	return &ClusterGateway{Server: s, Kubeconfig: s.Kubeconfig(t, "management", "other"), CA: ca, Address: addresses[3], log: log}
}

// isOK reports whether a GET of the URL has status 200.
func isOK(t *testing.T, url string) bool {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// Announced receives what is written.
type Announced chan string

func (a Announced) Write(b []byte) (int, error) {
	a <- string(b)
	return len(b), nil
}

// AcmeManifest registers an extension at whose address nothing listens.
const AcmeManifest = `apiVersion: runtime.cluster.x-k8s.io/v1beta2
kind: ExtensionConfig
metadata: {name: acme}
spec: {clientConfig: {url: "https://127.0.0.1:1"}}
`

// ApiServer answers lists as an API server does, by the path of the resource, and returns a kubeconfig for it.
func ApiServer(t *testing.T, lists map[string][]any) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		version, resource := path.Split(strings.TrimPrefix(r.URL.Path, "/apis/"))
		items, ok := lists[version+resource]
		var body any = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound}
		if ok {
			kind := map[string]string{
				"extensionconfigs": "ExtensionConfigList", "extensionpolicies": "ExtensionPolicyList", "handlerchains": "HandlerChainList", "hookrules": "HookRuleList", "providers": "ProviderList",
			}[resource]
			body = map[string]any{"kind": kind, "apiVersion": strings.TrimSuffix(version, "/"), "items": items}
		} else {
			w.WriteHeader(http.StatusNotFound)
		}
		_ = json.NewEncoder(w).Encode(body) // a client that has left does not matter
	}))
	t.Cleanup(server.Close)
	return WriteFile(t, "kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: %q}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
users: [{name: a, user: {}}]
current-context: a
`, server.URL))
}

// What a fake API server lists.
const (
	ListedConfigs   = "runtime.cluster.x-k8s.io/v1beta2/extensionconfigs"
	ListedPolicies  = "hookgate.dev/v1alpha1/extensionpolicies"
	ListedProviders = "clusterctl.cluster.x-k8s.io/v1alpha3/providers"
)

// NoKubeconfig makes sure that the user's own cluster is not asked.
func NoKubeconfig(t *testing.T) {
	t.Helper()
	before := clientcmd.RecommendedHomeFile // which client-go sets when the process starts
	clientcmd.RecommendedHomeFile = filepath.Join(t.TempDir(), "config")
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = before })
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
}

// ExtensionConfig returns an ExtensionConfig with a handler and conditions, each a type, a status, a reason and a
// message.
func ExtensionConfig(name string, conditions ...[4]string) map[string]any {
	list := []any{}
	for _, c := range conditions {
		list = append(list, map[string]any{
			"type": c[0], "status": c[1], "reason": c[2], "message": c[3], "lastTransitionTime": "2026-01-01T00:00:00Z",
		})
	}
	return map[string]any{
		"kind": "ExtensionConfig", "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "metadata": map[string]any{"name": name},
		"status": map[string]any{"conditions": list, "handlers": []any{map[string]any{
			"name": "v." + name, "requestHook": map[string]any{"apiVersion": "a/b", "hook": "C"},
		}}},
	}
}
