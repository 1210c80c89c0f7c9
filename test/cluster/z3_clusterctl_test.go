// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

// earlier is the version of the release that is upgraded from: the artefacts of an earlier commit.
const earlier = "v0.1.0-alpha.1"

// The providers of Cluster API, by their labels.
var managers = map[string]struct{ folder, name, kind, file, namespace, program string }{
	"cluster-api": {"core", "cluster-api", "CoreProvider", "core-components.yaml", "capi", "core"},
	"bootstrap-kubeadm": {"bootstrap/kubeadm", "kubeadm", "BootstrapProvider", "bootstrap-components.yaml", "capi-kubeadm-bootstrap",
		"kubeadm-bootstrap"},
	"control-plane-kubeadm": {"controlplane/kubeadm", "kubeadm", "ControlPlaneProvider", "control-plane-components.yaml",
		"capi-kubeadm-control-plane", "kubeadm-control-plane"},
}

// TestClusterctl installs Cluster API's own managers, the gateway and the infrastructure provider by clusterctl, as
// docs/clusterctl.md says, in the release of an earlier commit. A Cluster with a topology lives meanwhile: its hooks go from
// core to the gateway, whose two replicas know core by its client certificate. The gateway is restarted while the Cluster is
// made, and upgraded while it runs. At last all of it is deleted.
func TestClusterctl(t *testing.T) {
	withoutHub(t)
	kubectl(t, "delete", "-f", node.file("kinds.yaml"))
	c := newClusterctl(t)
	begun := time.Now()
	c.run(t, "init", "--core", "cluster-api", "--bootstrap", "kubeadm", "--control-plane", "kubeadm",
		"--runtime-extension", "hookgate:"+earlier, "--infrastructure", "hookgate:"+earlier)
	signInstalled(t)
	for _, m := range managers {
		rolledOut(t, m.namespace+"-system", m.namespace+"-controller-manager")
	}
	rolledOut(t, namespace, "hookgate")
	rolledOut(t, namespace, "hookgate-infrastructure")
	t.Logf("clusterctl init took %s", time.Since(begun).Round(time.Second))

	c.apply(t, earlier, "register.yaml")
	if out, err := newPlugin(t).run(t, "callers"); err != nil || strings.Count(out, "added --runtime-extension-client-cert-file") != 2 {
		t.Errorf("hookgate callers: %v\n%s", err, out)
	}
	for _, m := range managers {
		rolledOut(t, m.namespace+"-system", m.namespace+"-controller-manager")
	}
	for _, file := range []string{"extension.yaml", "cloud.yaml"} {
		manifests, err := files.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if manifests, err = sign(manifests); err != nil {
			t.Fatal(err)
		}
		apply(t, manifests)
	}
	rolledOut(t, "acme-system", "acme-extension")
	rolledOut(t, "rack-system", "rack")
	applyFile(t, "register.yaml")
	applyFile(t, "class.yaml")
	kubectl(t, "wait", "infrastructureclass/rack", "--for=condition=Ready", "--timeout=60s")
	kubectl(t, "wait", "extensionconfigs.runtime.hookgate.dev/acme", "--for=condition=Discovered", "--timeout=60s")
	kubectl(t, "wait", "extensionconfigs.runtime.cluster.x-k8s.io/hookgate", "--for=condition=Discovered", "--timeout=60s")

	begun = time.Now()
	c.generate(t)
	held := `jsonpath={.status.conditions[?(@.type=="TopologyReconciled")].message}`
	awaitOutput(t, "example.com/approved-by", "get", "clusters.cluster.x-k8s.io/my", "-o", held)
	kubectl(t, "annotate", "clusters.cluster.x-k8s.io/my", "example.com/approved-by=me")
	kubectl(t, "-n", namespace, "rollout", "restart", "deployment/hookgate")
	kubectl(t, "wait", "clusters.cluster.x-k8s.io/my", "--for=condition=Available", "--timeout=300s")
	t.Logf("the Cluster was made in %s", time.Since(begun).Round(time.Second))

	begun = time.Now()
	c.run(t, "upgrade", "apply", "--runtime-extension", namespace+"/hookgate:"+release, "--infrastructure", namespace+"/hookgate:"+release)
	signInstalled(t)
	rolledOut(t, namespace, "hookgate")
	rolledOut(t, namespace, "hookgate-infrastructure")
	t.Logf("clusterctl upgrade took %s", time.Since(begun).Round(time.Second))
	kubectl(t, "patch", "clusters.cluster.x-k8s.io/my", "--type=json", "-p",
		`[{"op": "replace", "path": "/spec/topology/workers/machineDeployments/0/replicas", "value": 2}]`)
	awaitOutput(t, "2", "get", "machinedeployments.cluster.x-k8s.io", "-o", "jsonpath={.items[*].status.readyReplicas}")

	begun = time.Now()
	kubectl(t, "delete", "clusters.cluster.x-k8s.io/my", "--timeout=180s")
	t.Logf("the Cluster was deleted in %s", time.Since(begun).Round(time.Second))
	kubectl(t, "delete", "-f", node.file("class.yaml"))
	kubectl(t, "delete", "-f", node.file("register.yaml"))
	kubectl(t, "delete", "extensionconfigs.runtime.cluster.x-k8s.io/hookgate")
	kubectl(t, "delete", "clusterclasses.cluster.x-k8s.io", "--all")
	c.run(t, "delete", "--infrastructure", "hookgate", "--include-crd")
	c.run(t, "delete", "--runtime-extension", "hookgate", "--include-crd", "--include-namespace")
	process.EventuallySees(t, process.Patience, "nothing of Hookgate is left", func() (string, bool) {
		left, err := tryObjects()
		maps.DeleteFunc(left, func(name string, _ bool) bool {
			return !strings.Contains(name, "hookgate") || strings.HasSuffix(name, "/hookgate-client") // which is core's
		})
		return fmt.Sprint(err, slices.Sorted(maps.Keys(left))), err == nil && len(left) == 0
	})
}

// clusterctl is a folder of providers, and the configuration of clusterctl that names them.
type clusterctl struct{ dir, config string }

func newClusterctl(t *testing.T) *clusterctl {
	t.Helper()
	c := &clusterctl{dir: t.TempDir()}
	c.config = filepath.Join(c.dir, "clusterctl.yaml")
	var providers []map[string]string
	add := func(name, kind, label, file string) {
		providers = append(providers, map[string]string{"name": name, "type": kind, "url": "file://" + filepath.Join(c.dir, label, "latest", file)})
	}
	api := struct{ Dir, Version string }{}
	cmd := exec.Command("go", "-C", filepath.Join(root(t), "tools", "clusterctl"), "list", "-m", "-json", "sigs.k8s.io/cluster-api")
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &api)
	}
	if err != nil {
		t.Fatal(err)
	}
	for label, m := range managers {
		components, err := exec.Command(process.Program(t, "HOOKGATE_KUSTOMIZE"), "build", filepath.Join(api.Dir, m.folder, "config", "default")).Output()
		if err != nil {
			t.Fatal(err)
		}
		text := regexp.MustCompile(`image: \S+`).ReplaceAllString(string(components), "image: localhost/test:1")
		text = strings.NewReplacer("- /manager\n", "- /"+m.program+"\n", "imagePullPolicy: Always", "imagePullPolicy: Never").Replace(text)
		c.write(t, label, api.Version, m.file, []byte(text))
		c.copy(t, label, api.Version, filepath.Join(api.Dir, "metadata.yaml"))
		add(m.name, m.kind, label, m.file)
	}
	for version, dir := range map[string]string{
		earlier: filepath.Join(os.Getenv(allVariable), "earlier", "release"), release: released(t, filepath.Join(root(t), "deploy", "release"), release),
	} {
		for label, pattern := range map[string]string{"runtime-extension-hookgate": "r*.yaml", "infrastructure-hookgate": "[ci]*.yaml"} {
			names, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil || len(names) == 0 {
				t.Fatalf("%s: %v %v", pattern, names, err)
			}
			c.copy(t, label, version, append(names, filepath.Join(dir, "metadata.yaml"))...)
		}
	}
	add("hookgate", "RuntimeExtensionProvider", "runtime-extension-hookgate", "runtime-extension-components.yaml")
	add("hookgate", "InfrastructureProvider", "infrastructure-hookgate", "infrastructure-components.yaml")
	c.copy(t, "cert-manager", "v1.21.2", node.file("certmanager.yaml"))
	text, err := json.Marshal(map[string]any{
		"providers":    providers,
		"cert-manager": map[string]string{"url": "file://" + filepath.Join(c.dir, "cert-manager", "v1.21.2", "certmanager.yaml"), "version": "v1.21.2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.write(t, "", "", "clusterctl.yaml", text)
	return c
}

func (c *clusterctl) write(t *testing.T, label, version, file string, data []byte) {
	t.Helper()
	dir := filepath.Join(c.dir, label, version)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (c *clusterctl) copy(t *testing.T, label, version string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c.write(t, label, version, filepath.Base(path), data)
	}
}

// command returns what a program prints, run as an administrator.
func (c *clusterctl) command(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+node.kubeconfig, "HOME="+c.dir, "XDG_CONFIG_HOME="+c.dir, "CLUSTERCTL_DISABLE_VERSIONCHECK=true",
		"GOPROXY=off", "EXP_RUNTIME_SDK=true", "CLUSTER_TOPOLOGY=true", "HOOKGATE_INFRASTRUCTURE_CLASS=rack")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

func (c *clusterctl) run(t *testing.T, args ...string) string {
	t.Helper()
	return c.command(t, process.Program(t, "HOOKGATE_CLUSTERCTL"), append(args, "--config", c.config)...)
}

// apply applies a file of the gateway's release, whose webhook is core's: kube-proxy knows an endpoint up to a second after
// its Pod is ready.
func (c *clusterctl) apply(t *testing.T, version, file string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir, "runtime-extension-hookgate", version, file))
	if err != nil {
		t.Fatal(err)
	}
	process.EventuallySees(t, process.Patience, file+" is applied", func() (string, bool) {
		out, err := tryKubectl(data, "apply", "--server-side", "-f", "-")
		return fmt.Sprint(out, err), err == nil
	})
}

// generate makes the Cluster and its ClusterClass from the template of the release.
func (c *clusterctl) generate(t *testing.T) {
	t.Helper()
	manifests := c.run(t, "generate", "cluster", "my", "--infrastructure", "hookgate:"+earlier, "--flavor", "topology",
		"--kubernetes-version", "v1.35.5", "--target-namespace", "default")
	process.EventuallySees(t, process.Patience, "the ClusterClass is reconciled, and the Cluster is admitted", func() (string, bool) {
		out, err := tryKubectl([]byte(manifests), "apply", "--server-side", "-f", "-")
		return fmt.Sprint(out, err), err == nil
	})
}
