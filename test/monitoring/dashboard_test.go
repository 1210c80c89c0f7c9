// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/infrastructure/overview"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// queries returns the queries of the dashboard by the titles of their panels, as Grafana sends them.
func queries(t *testing.T) map[string]string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Type    string `json:"type"`
			Title   string `json:"title"`
			Targets []struct {
				Expr  string `json:"expr"`
				RefID string `json:"refId"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(read(t, filepath.Join(root, "deploy", "monitoring", "dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$job", "hookgate", "$__rate_interval", "30s")
	found, row := map[string]string{}, ""
	for _, p := range dashboard.Panels {
		if p.Type == "row" {
			row = p.Title
			continue
		}
		for _, target := range p.Targets {
			found[row+"/"+p.Title+"/"+target.RefID] = variables.Replace(target.Expr)
		}
	}
	if len(found) < 20 {
		t.Fatalf("the dashboard has %d queries: it had more", len(found))
	}
	return found
}

// TestQueriesOfTheDashboard runs each query against a real Prometheus that has scraped a real gateway, to which
// everything has happened that the dashboard shows. Each has to return data.
func TestQueriesOfTheDashboard(t *testing.T) {
	binary, program := process.Program(t, "HOOKGATE_BIN"), process.Program(t, "HOOKGATE_PROMETHEUS")
	pair := certificates.New(t)
	gateway := startGateway(t, binary, pair, startExtension(t, pair))
	scrapes := startPrometheus(t, program, gateway.Diagnostics, infrastructureMetrics(t))
	client := &http.Client{Timeout: process.Patience, Transport: &http.Transport{TLSClientConfig: pair.ClientTLS()}}
	t.Cleanup(client.CloseIdleConnections)

	missing := queries(t)
	process.Eventually(t, "data for each query", func() bool {
		for _, name := range []string{"BeforeClusterCreate", "BeforeClusterUpgrade", "AfterClusterUpgrade"} {
			call(t, client, gateway.HTTPS, name)
		}
		for name, expr := range missing {
			if hasData(t, scrapes, expr) {
				delete(missing, name)
			}
		}
		t.Logf("%d queries have no data yet: %q", len(missing), slices.Sorted(maps.Keys(missing)))
		return len(missing) == 0
	})
}

// hasData reports whether a query returns a series with a value that is a number.
func hasData(t *testing.T, address, expr string) bool {
	t.Helper()
	response, err := http.PostForm(address+"/api/v1/query", url.Values{"query": {expr}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   struct {
			Result []struct {
				Value [2]any `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %v %s", expr, err, answer.Error)
	}
	for _, series := range answer.Data.Result {
		if series.Value[1] != "NaN" {
			return true
		}
	}
	return false
}

// infrastructureMetrics serves the metrics about a machine that does not become ready, and returns its address.
func infrastructureMetrics(t *testing.T) string {
	t.Helper()
	c := infrav1.HookgateCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}}
	c.Spec.InfrastructureClassName = "rack"
	m := infrav1.HookgateMachine{ObjectMeta: metav1.ObjectMeta{Name: "m", Labels: c.Labels}}
	m.Status.Conditions = []metav1.Condition{
		{Type: infrav1.ReadyCondition, Status: metav1.ConditionFalse, Reason: infrav1.ProvisioningReason},
		{Type: infrav1.SyncedCondition, Status: metav1.ConditionFalse, Reason: infrav1.CallFailedReason},
	}
	all := &overview.Objects{Clusters: []infrav1.HookgateCluster{c}, Machines: []infrav1.HookgateMachine{m}}
	r := prometheus.NewRegistry()
	r.MustRegister(overview.NewCollector(func() (*overview.Objects, error) { return all, nil }, time.Now))
	server := httptest.NewServer(promhttp.HandlerFor(r, promhttp.HandlerOpts{}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// startPrometheus runs Prometheus, which scrapes the addresses every two seconds, and returns its URL.
func startPrometheus(t *testing.T, program string, addresses ...string) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "prometheus.yaml")
	text := "global: {scrape_interval: 2s, scrape_timeout: 2s}\nscrape_configs:\n- job_name: hookgate\n  static_configs: [{targets: ['" +
		strings.Join(addresses, "', '") + "']}]\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	listens := fmt.Sprintf("127.0.0.1:%d", process.FreePort(t))
	process.Run(t, "prometheus", exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+t.TempDir(),
		"--web.listen-address="+listens, "--log.level=warn"))
	process.Eventually(t, "Prometheus is ready", func() bool {
		response, err := http.Get("http://" + listens + "/-/ready")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return "http://" + listens
}

// startGateway runs a gateway for the extension acme, which gets objects of v1beta2.
func startGateway(t *testing.T, binary string, pair *devcert.Pair, extension string) *process.Gateway {
	t.Helper()
	certs, configs := t.TempDir(), t.TempDir()
	if err := pair.WriteDir(certs); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(certs, "ca.crt")); err != nil && !os.IsNotExist(err) { // callers need no certificate
		t.Fatal(err)
	}
	manifest := fmt.Sprintf(`apiVersion: runtime.cluster.x-k8s.io/v1beta2
kind: ExtensionConfig
metadata:
  name: acme
spec:
  clientConfig:
    url: %s
    caBundle: %s
---
apiVersion: hookgate.dev/v1alpha1
kind: ExtensionPolicy
metadata:
  name: acme
spec:
  targetRef:
    name: acme
  clusterAPIVersion: v1beta2
`, extension, base64.StdEncoding.EncodeToString(pair.CAPEM))
	if err := os.WriteFile(filepath.Join(configs, "acme.yaml"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	g := process.RunGateway(t, exec.Command(binary, append([]string{
		"serve", "--extension-configs", configs, "--cert-dir", certs,
	}, process.AnyPorts()...)...))
	g.WaitReady(t)
	return g
}

// startExtension serves three handlers: one lets each Cluster wait, one does not work, which its failure policy hides,
// and one takes nearly as long as it may.
func startExtension(t *testing.T, pair *devcert.Pair) string {
	t.Helper()
	config := certificates.Server(t, pair)
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, kind string, members map[string]any) {
		members["apiVersion"], members["kind"], members["status"] = hook.APIVersion, kind, "Success"
		_ = json.NewEncoder(w).Encode(members)
	}
	handler := func(name, of, failurePolicy string) any {
		return map[string]any{
			"name": name, "timeoutSeconds": 5, "failurePolicy": failurePolicy,
			"requestHook": map[string]any{"apiVersion": hook.APIVersion, "hook": of},
		}
	}
	mux.HandleFunc("POST /"+hook.APIVersion+"/discovery", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, "DiscoveryResponse", map[string]any{"handlers": []any{
			handler("hold", "BeforeClusterCreate", "Fail"), handler("broken", "BeforeClusterUpgrade", "Ignore"),
			handler("slow", "AfterClusterUpgrade", "Fail"),
		}})
	})
	mux.HandleFunc("POST /"+hook.APIVersion+"/beforeclustercreate/hold", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, "BeforeClusterCreateResponse", map[string]any{"message": "not yet", "retryAfterSeconds": 30})
	})
	mux.HandleFunc("POST /"+hook.APIVersion+"/beforeclusterupgrade/broken", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "broken", http.StatusInternalServerError)
	})
	mux.HandleFunc("POST /"+hook.APIVersion+"/afterclusterupgrade/slow", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(4250 * time.Millisecond): // of five seconds
			answer(w, "AfterClusterUpgradeResponse", map[string]any{})
		}
	})
	server := httptest.NewUnstartedServer(mux)
	server.TLS = config
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// call calls a hook for a Cluster of v1beta1, with a member that v1beta2 does not have. What comes of it does not matter.
func call(t *testing.T, client *http.Client, address, name string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"apiVersion": hook.APIVersion, "kind": name + "Request", "fromKubernetesVersion": "v1.33.0", "toKubernetesVersion": "v1.34.0",
		"kubernetesVersion": "v1.34.0",
		"cluster": map[string]any{
			"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": map[string]any{"name": "c", "namespace": "n"},
			"spec": map[string]any{"topology": map[string]any{
				"class": "class", "version": "v1.33.0", "rolloutAfter": "2026-01-02T03:04:05Z",
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Post("https://"+address+"/"+hook.APIVersion+"/"+strings.ToLower(name), "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
}
