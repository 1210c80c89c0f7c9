// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCharts installs the charts of a release as docs/deploy.md says, and uninstalls them: the definitions stay, and
// nothing else.
func TestCharts(t *testing.T) {
	withoutHub(t)
	charts := released(t, filepath.Join(root(t), "deploy", "release"), release)
	hub, provider := filepath.Join(charts, "hookgate-0.1.0.tgz"), filepath.Join(charts, "hookgate-infrastructure-0.1.0.tgz")
	core := filepath.Join(root(t), "deploy", "crd", "runtime.cluster.x-k8s.io_extensionconfigs.yaml")
	t.Run("hub-beside-core", func(t *testing.T) {
		c := newChart(t)
		c.install(t, "hookgate", hub, "certificates=self")
		c.install(t, "hookgate-infrastructure", provider, "certificates=self")
		c.uninstall(t, "hookgate-infrastructure")
		c.uninstall(t, "hookgate")
	})
	t.Run("hub-alone", func(t *testing.T) {
		c := newChart(t)
		c.install(t, "hookgate", hub, "installation=hub-alone", "certificates=self", "oneNamespace=true")
		c.uninstall(t, "hookgate")
	})
	t.Run("reader-beside-core", func(t *testing.T) {
		kubectl(t, "apply", "--server-side", "-f", core)
		t.Cleanup(func() { kubectl(t, "delete", "-f", core) })
		c := newChart(t)
		c.install(t, "hookgate", hub, "installation=reader-beside-core", "certificates=self")
		c.uninstall(t, "hookgate", "runtime.cluster.x-k8s.io")
	})
	t.Run("directory", func(t *testing.T) {
		c := newChart(t)
		c.install(t, "hookgate", hub, "installation=directory", "certificates=self", "metrics=true")
		c.uninstall(t, "hookgate")
	})
	t.Run("cert-manager", func(t *testing.T) {
		applyFile(t, "certmanager.yaml")
		t.Cleanup(func() { kubectl(t, "delete", "-f", node.file("certmanager.yaml")) })
		c := newChart(t)
		c.install(t, "hookgate", hub)
		c.uninstall(t, "hookgate", "cert-manager")
	})
	t.Run("machines", func(t *testing.T) { machinesAreReleased(t, hub) })
}

// machinesAreReleased uninstalls a gateway that holds a Machine: the Job of the chart takes its annotations off first.
func machinesAreReleased(t *testing.T, hub string) {
	c := newChart(t)
	c.install(t, "hookgate", hub, "certificates=self", "machines=true")
	applyFile(t, "held.yaml")
	awaitOutput(t, "hookgate", "get", "machine/held", "-o", annotations)
	c.helm(t, "uninstall", "hookgate", "--namespace", namespace, "--timeout", "3m")
	if left := kubectl(t, "get", "machine/held", "-o", annotations); strings.Contains(left, "hookgate") {
		t.Errorf("the Machine has the annotations %s", left)
	}
	kubectl(t, "delete", "-f", node.file("held.yaml"))
	c.expectRemoved(t)
}

// chart is a namespace in which Helm installs.
type chart struct{ dir string }

func newChart(t *testing.T) *chart {
	t.Helper()
	kubectl(t, "create", "namespace", namespace)
	kubectl(t, "label", "namespace", namespace, "cluster.x-k8s.io/provider=runtime-extension-hookgate",
		"pod-security.kubernetes.io/enforce=restricted")
	return &chart{dir: t.TempDir()}
}

// helm runs Helm as an administrator.
func (c *chart) helm(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(program(t, "helm"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+node.kubeconfig, "HELM_CACHE_HOME="+c.dir, "HELM_CONFIG_HOME="+c.dir, "HELM_DATA_HOME="+c.dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (c *chart) install(t *testing.T, name, file string, values ...string) {
	t.Helper()
	begun := time.Now()
	args := []string{"install", name, file, "--namespace", namespace}
	for _, value := range values {
		args = append(args, "--set", value)
	}
	c.helm(t, args...)
	if !slices.Contains(values, "certificates=self") {
		signInstalled(t)
	}
	rolledOut(t, namespace, name)
	t.Logf("installed %s in %s", name, time.Since(begun).Round(time.Second))
}

// uninstall uninstalls a release. Once there are no Pods, nothing is left but definitions and what is kept.
func (c *chart) uninstall(t *testing.T, name string, kept ...string) {
	t.Helper()
	c.helm(t, "uninstall", name, "--namespace", namespace)
	if name == "hookgate" {
		c.expectRemoved(t, kept...)
	}
}

// expectRemoved deletes the namespace and the definitions, which stay, and expects the objects from before.
func (c *chart) expectRemoved(t *testing.T, kept ...string) {
	t.Helper()
	stays := func(object string) bool {
		return slices.ContainsFunc(kept, func(k string) bool { return strings.Contains(object, k) })
	}
	expectLeft(t, func(object string) bool {
		switch kind, _, _ := strings.Cut(object, "/"); kind {
		case "CustomResourceDefinition", "Secret", "ServiceAccount", "ConfigMap", "Namespace", "HookRule", "APIService":
			// Secrets with certificates stay in the namespace, in which Kubernetes itself makes two objects.
			return true
		}
		return stays(object)
	})
	kubectl(t, "delete", "namespace", namespace)
	kubectl(t, "delete", "crd", "-l", "app.kubernetes.io/managed-by=Helm")
	expectLeft(t, stays)
}
