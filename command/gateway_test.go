// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/network/tunnel/tunneltest"
	"github.com/hookgate/hookgate/test/certificates"
)

// clusterGateway is a gateway, run by hookgate serve, behind the Pod a of namespace hookgate-system.
type clusterGateway struct {
	*tunneltest.Server
	kubeconfig string
	ca         string
	address    string // of the diagnostics
	log        *bytes.Buffer
}

// newClusterGateway starts a gateway with the ExtensionConfigs in the manifests. Its certificate is for the Service.
func newClusterGateway(t *testing.T, manifests string, podArgs ...string) *clusterGateway {
	t.Helper()
	configs, certs := t.TempDir(), t.TempDir()
	pair := certificates.In(t, certs, "hookgate.hookgate-system.svc")
	if err := os.WriteFile(filepath.Join(configs, "manifests.yaml"), []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	out, log, done := make(announced, 1), &bytes.Buffer{}, make(chan int)
	go func() {
		done <- run(ctx, []string{"serve", "--extension-configs", configs, "--cert-dir", certs, "--http-address", "127.0.0.1:0",
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
	return &clusterGateway{Server: s, kubeconfig: s.Kubeconfig(t, "management", "other"), ca: ca, address: addresses[3], log: log}
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

// announced receives what is written.
type announced chan string

func (a announced) Write(b []byte) (int, error) {
	a <- string(b)
	return len(b), nil
}

const acmeManifest = `apiVersion: runtime.cluster.x-k8s.io/v1beta2
kind: ExtensionConfig
metadata: {name: acme}
spec: {clientConfig: {url: "https://127.0.0.1:1"}}
`

// TestGatewayInACluster runs each client command against a gateway in a cluster, with what each way to name it allows.
func TestGatewayInACluster(t *testing.T) {
	g := newClusterGateway(t, acmeManifest)
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"Describe":        {[]string{"describe", "acme", "--kubeconfig", g.kubeconfig}, cmdline.ExitDone, "acme"},
		"Context":         {[]string{"describe", "acme", "--kubeconfig", g.kubeconfig, "--context", "other"}, cmdline.ExitDone, "acme"},
		"Gateway":         {[]string{"describe", "acme", "--kubeconfig", g.kubeconfig, "--gateway", "hookgate-system/a"}, cmdline.ExitDone, "acme"},
		"Address":         {[]string{"describe", "acme", "--kubeconfig", g.kubeconfig, "--diagnostics", "http://127.0.0.1:8443"}, cmdline.ExitDone, "acme"},
		"GetExtensions":   {[]string{"get", "extensions", "--kubeconfig", g.kubeconfig, "--gateway", "hookgate-system"}, cmdline.ExitDone, "acme"},
		"GetHandlers":     {[]string{"get", "handlers", "--kubeconfig", g.kubeconfig}, cmdline.ExitDone, "hookgate-system/a has no handlers"},
		"GetHolds":        {[]string{"get", "holds", "--kubeconfig", g.kubeconfig}, cmdline.ExitDone, "No Cluster waits for a handler of hookgate-system/a."},
		"Call":            {[]string{"call", "Discovery", "--kubeconfig", g.kubeconfig, "--ca", g.ca, "-o", "json"}, cmdline.ExitDone, `"status": "Success"`},
		"CallGRPC":        {[]string{"call", "Discovery", "--kubeconfig", g.kubeconfig, "--ca", g.ca, "-o", "json", "--server", "grpcs://hookgate.hookgate-system.svc:9090"}, cmdline.ExitDone, `"status": "Success"`},
		"Discover":        {[]string{"get", "handlers", "--kubeconfig", g.kubeconfig, "--ca", g.ca, "--server", "https://hookgate.hookgate-system.svc:9443", "-o", "json"}, cmdline.ExitDone, `"status": "Success"`},
		"Untrusted":       {[]string{"call", "Discovery", "--kubeconfig", g.kubeconfig}, cmdline.ExitFailed, "--ca FILE"},
		"OtherPort":       {[]string{"get", "holds", "--kubeconfig", g.kubeconfig, "--diagnostics", "http://127.0.0.1:8444"}, cmdline.ExitFailed, "nothing listens on port 8444 of Pod a"},
		"CallOtherPort":   {[]string{"call", "Discovery", "--kubeconfig", g.kubeconfig, "--ca", g.ca, "--server", "https://hookgate.hookgate-system.svc:9444"}, cmdline.ExitFailed, "nothing listens on port 9444 of Pod a"},
		"UnknownContext":  {[]string{"get", "holds", "--kubeconfig", g.kubeconfig, "--context", "none"}, cmdline.ExitFailed, `context "none" does not exist`},
		"NoKubeconfig":    {[]string{"get", "holds", "--kubeconfig", "none"}, cmdline.ExitFailed, "kubeconfig: "},
		"OtherNamespace":  {[]string{"get", "holds", "--kubeconfig", g.kubeconfig, "--gateway", "none"}, cmdline.ExitFailed, "namespace none has no Pod of a gateway"},
		"NotReady":        {[]string{"get", "holds", "--kubeconfig", g.kubeconfig, "--gateway", "elsewhere"}, cmdline.ExitFailed, "no Pod of a gateway that is ready"},
		"NoNamespace":     {[]string{"get", "holds", "--kubeconfig", g.kubeconfig, "--gateway", "/a"}, cmdline.ExitUsage, `--gateway "/a": want NAMESPACE or NAMESPACE/POD`},
		"NoPod":           {[]string{"get", "holds", "--kubeconfig", g.kubeconfig, "--gateway", "a/"}, cmdline.ExitUsage, `--gateway "a/": want NAMESPACE or NAMESPACE/POD`},
		"TokenInTheClear": {[]string{"get", "holds", "--kubeconfig", g.kubeconfig, "--diagnostics", "http://hookgate:8443", "--token", "x"}, cmdline.ExitUsage, "need TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			got := hookgate(t, "", tt.args...)
			if got.code != tt.code || !strings.Contains(got.out+got.errOut, tt.want) {
				t.Errorf("exit status %d, want %d; want %q\n%s%s", got.code, tt.code, tt.want, got.out, got.errOut)
			}
		})
	}
}

// TestAddressesOfAPod checks what the command line of a Pod says about its addresses.
func TestAddressesOfAPod(t *testing.T) {
	for name, tt := range map[string]struct {
		args                []string
		env                 map[string]string
		diagnostics, server string
	}{
		"Defaults":    {nil, nil, "http://127.0.0.1:8443", "https://hookgate.ns.svc:9443"},
		"Everywhere":  {[]string{"--diagnostics-address=:8444", "--http-address=:9444"}, nil, "https://hookgate.ns.svc:8444", "https://hookgate.ns.svc:9444"},
		"Loopback":    {[]string{"--diagnostics-address", "localhost:8444"}, nil, "http://127.0.0.1:8444", "https://hookgate.ns.svc:9443"},
		"Insecure":    {[]string{"--insecure-diagnostics", "--diagnostics-address=:8444"}, nil, "http://127.0.0.1:8444", "https://hookgate.ns.svc:9443"},
		"NotInsecure": {[]string{"--insecure-diagnostics=false", "--diagnostics-address=:8444"}, nil, "https://hookgate.ns.svc:8444", "https://hookgate.ns.svc:9443"},
		"LastWins":    {[]string{"--diagnostics-address=:1", "--diagnostics-address=:2"}, nil, "https://hookgate.ns.svc:2", "https://hookgate.ns.svc:9443"},
		"Environment": {nil, map[string]string{"HOOKGATE_DIAGNOSTICS_ADDRESS": ":3"}, "https://hookgate.ns.svc:3", "https://hookgate.ns.svc:9443"},
		"Nonsense":    {[]string{"--diagnostics-address=x"}, nil, "http://127.0.0.1:8443", "https://hookgate.ns.svc:9443"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := tunneltest.Pod("ns", "a", true, 0, tt.args...)
			for key, value := range tt.env {
				pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: key, Value: value})
			}
			pod.Spec.Containers = append([]corev1.Container{{Name: "other", Args: []string{"--diagnostics-address=:9"}}}, pod.Spec.Containers...)
			if got := target.DiagnosticsOf(&pod); got != tt.diagnostics {
				t.Errorf("diagnostics %s, want %s", got, tt.diagnostics)
			}
			if got := target.ServerOf(&pod); got != tt.server {
				t.Errorf("server %s, want %s", got, tt.server)
			}
		})
	}
}
