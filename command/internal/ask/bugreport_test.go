// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/network/tunnel/tunneltest"
	"github.com/hookgate/hookgate/test/certificates"
)

// TestBugReport plants secrets in everything that a report is made from, and finds none of them in it, but all else.
func TestBugReport(t *testing.T) {
	const (
		planted  = "pl4nted"
		inURL    = planted + "-in-url"
		token    = planted + "-token"
		setting  = planted + "-setting \"quoted\""
		flag     = planted + "-flag"
		variable = planted + "-variable"
		applied  = planted + "-applied"
		bearer   = planted + "-bearer"
	)
	pair := certificates.New(t)
	key := string(pair.KeyPEM)
	g := commandtest.NewClusterGateway(t, commandtest.AcmeManifest)
	pod := tunneltest.Pod("hookgate-system", "a", true, 0, "--http-address=:9443", "--token", flag, "--tracing-header="+flag+"2")
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: "460MiB"}, {Name: "PLAIN", Value: variable}, {Name: "HOOKGATE_TOKEN", Value: variable + "2"}}
	g.SetPods(pod)
	g.Logs = fmt.Sprintf("level=INFO msg=started\nlevel=WARN msg=%q setting=%q\nAuthorization: Bearer %s\n%s\n%s\n", token, setting, bearer, key, tunneltest.Token)
	object := func(name string) map[string]any {
		return map[string]any{
			"apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig",
			"metadata": map[string]any{"name": name, "annotations": map[string]any{
				"kubectl.kubernetes.io/last-applied-configuration": `{"password":"` + applied + `"}`,
				"runtime.cluster.x-k8s.io/inject-ca-from-secret":   "ns/name",
			}},
			"spec": map[string]any{
				"settings":     map[string]any{"account": setting},
				"clientConfig": map[string]any{"url": "https://u:" + inURL + "@acme.example", "caBundle": planted + "-ca"},
			},
		}
	}
	g.Lists = map[string][]any{
		"/apis/runtime.cluster.x-k8s.io/v1beta2/extensionconfigs": {object("in-core")},
		"/apis/runtime.hookgate.dev/v1beta2/extensionconfigs":     {object("in-hub")},
		"/apis/hookgate.dev/v1alpha1/extensionpolicies":           {},
		"/apis/hookgate.dev/v1alpha1/extensionrollouts": {map[string]any{
			"apiVersion": "hookgate.dev/v1alpha1", "kind": "ExtensionRollout", "metadata": map[string]any{"name": "moving"},
		}},
		"/apis/hookgate.dev/v1alpha1/hookrules": {map[string]any{
			"apiVersion": "hookgate.dev/v1alpha1", "kind": "HookRule", "metadata": map[string]any{"name": "approved"},
		}},
		"/apis/hookgate.dev/v1alpha1/handlerchains": {map[string]any{
			"apiVersion": "hookgate.dev/v1alpha1", "kind": "HandlerChain", "metadata": map[string]any{"name": "chain"},
			"spec": map[string]any{"hook": "GeneratePatches", "steps": []any{
				map[string]any{"handler": "a.acme"}, map[string]any{"handler": "b.acme", "settings": map[string]any{"mode": setting + "2"}},
			}},
		}},
	}
	file := filepath.Join(t.TempDir(), "report.zip")
	got := commandtest.Hookgate(t, "", "bug-report", "--kubeconfig", g.Kubeconfig, "--token", token, "-f", file)
	if got.Code != cmdline.ExitDone || got.ErrOut != "" {
		t.Fatalf("exit status %d: %s%s", got.Code, got.Out, got.ErrOut)
	}
	files := commandtest.Unzip(t, file)
	for name, content := range files {
		for _, secret := range []string{planted, tunneltest.Token, "PRIVATE KEY", strings.Split(key, "\n")[1]} {
			if strings.Contains(content, secret) {
				t.Errorf("%s has the secret %q:\n%s", name, secret, content)
			}
		}
		if !strings.Contains(got.Out, name) {
			t.Errorf("%s is not listed in\n%s", name, got.Out)
		}
	}
	for name, want := range map[string]string{
		"command.json":       `"gateway": "hookgate-system/a"`,
		"status.json":        `"name": "acme"`,
		"extensions.json":    `"name": "acme"`,
		"handlers.json":      "[]",
		"metrics.txt":        "hookgate_registered_extensions 0",
		"readyz.txt":         "readyz check passed",
		"pods/a.json":        "--http-address=:9443",
		"pods/a-manager.log": "level=INFO msg=started",
		"cluster/extensionconfigs.runtime.cluster.x-k8s.io.json": `"account": "***"`,
		"cluster/extensionconfigs.runtime.hookgate.dev.json":     "inject-ca-from-secret",
		"cluster/extensionpolicies.json":                         "[]",
		"cluster/extensionrollouts.json":                         `"name": "moving"`,
		"cluster/handlerchains.json":                             `"mode": "***"`,
		"cluster/hookrules.json":                                 `"name": "approved"`,
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s lacks %q:\n%s", name, want, files[name])
		}
		delete(files, name)
	}
	if len(files) > 0 {
		t.Errorf("unexpected files: %v", files)
	}
}

// TestBugReportOfPart checks that what cannot be read is said, and does not keep the rest from the report.
func TestBugReportOfPart(t *testing.T) {
	s := commandtest.ServeStatus(t, commandtest.GatewayStatus)
	file := filepath.Join(t.TempDir(), "report.zip")
	got := commandtest.Hookgate(t, "", "bug-report", "--diagnostics", s.URL, "-f", file)
	if got.Code != cmdline.ExitDone || !strings.Contains(got.Out, "could not be read") {
		t.Fatalf("%+v", got)
	}
	files := commandtest.Unzip(t, file)
	if !strings.Contains(files["metrics.txt"], "HTTP 404") || !strings.Contains(files["status.json"], "acme") {
		t.Errorf("got %v", files)
	}
	again := commandtest.Hookgate(t, "", "bug-report", "--diagnostics", s.URL, "-f", file)
	if again.Code != cmdline.ExitFailed || !strings.Contains(again.ErrOut, "file exists") || len(commandtest.Unzip(t, file)) != len(files) {
		t.Errorf("over a file that exists: %+v", again)
	}
	down := filepath.Join(t.TempDir(), "down.zip")
	if got := commandtest.Hookgate(t, "", "bug-report", "--diagnostics", "http://127.0.0.1:1", "-f", down); got.Code != cmdline.ExitFailed || !strings.Contains(got.ErrOut, "connection refused") {
		t.Errorf("of a gateway that is down: %+v", got)
	}
	if _, err := os.Stat(down); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a report of nothing: %v", err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file %v, %v", info, err)
	}
}

// TestBugReportHasNoValuesOfTemplates holds that a report says where the versions of a rollout differ, and not in what.
func TestBugReportHasNoValuesOfTemplates(t *testing.T) {
	s := commandtest.ServeStatus(t, func() *status.Gateway {
		g := rolloutsStatus()
		for _, c := range []*status.RolloutCluster{g.Rollouts[0].Variables, &g.Rollouts[0].Clusters[0]} {
			c.Differences[0].Stable, c.Differences[0].Candidate = "pl4nted-1", "pl4nted-2"
		}
		return g
	})
	file := filepath.Join(t.TempDir(), "report.zip")
	got := commandtest.Hookgate(t, "", "bug-report", "--diagnostics", s.URL, "-f", file)
	reported := commandtest.Unzip(t, file)["status.json"]
	if got.Code != cmdline.ExitDone || !strings.Contains(reported, "/variables/0/required") || strings.Contains(reported, "pl4nted") {
		t.Errorf("exit status %d, %s:\n%s", got.Code, got.ErrOut, reported)
	}
}
