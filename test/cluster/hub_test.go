// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

const (
	namespace = "hookgate-system"
	// release is the version of the components and of the image.
	release = "v0.1.0"
)

// kubectl runs kubectl as an administrator, and returns its output.
func kubectl(t *testing.T, args ...string) string { return kubectlWith(t, nil, args...) }

func kubectlWith(t *testing.T, input []byte, args ...string) string {
	t.Helper()
	out, err := tryKubectl(input, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tryKubectl(input []byte, args ...string) (string, error) {
	args = node.kubectlArgs(args...)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args[3:], " "), err, out)
	}
	return string(out), nil
}

func apply(t *testing.T, manifests []byte) {
	t.Helper()
	kubectlWith(t, manifests, "apply", "--server-side", "--force-conflicts", "-f", "-")
}

// applyFile applies a file of testdata.
func applyFile(t *testing.T, name string) {
	t.Helper()
	data, err := files.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	apply(t, data)
}

// kustomize renders a kustomization, with Secrets in place of Certificates.
func kustomize(t *testing.T, kustomization string, others map[string][]byte) []byte {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Join(root(t), "bin"), "kustomize-") //nolint:usetesting // deploy/ is ../../deploy
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, data := range others {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := sign([]byte(kubectl(t, "kustomize", dir)))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// root is the directory of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var (
	installed sync.Once
	complete  bool
	// before are the objects of the cluster before the hub's.
	before       map[string]bool
	hubManifests []byte
)

// hub installs the components of a release with HookJobs, an extension behind a Service that is registered with it, and a
// Pod that calls: once for all tests.
func hub(t *testing.T) {
	t.Helper()
	if skipped != "" {
		t.Skip(skipped)
	}
	installed.Do(func() { install(t); complete = true })
	if !complete {
		t.Fatal("the installation has failed")
	}
}

// released returns the directory of the files of a release.
func released(t *testing.T, source, version string) string {
	t.Helper()
	out := t.TempDir()
	if err := run(process.Program(t, "HOOKGATE_RELEASE"), "-version", version, "-kustomize", process.Program(t, "HOOKGATE_KUSTOMIZE"),
		"-source", source, "-output", out); err != nil {
		t.Fatal(err)
	}
	return out
}

func install(t *testing.T) {
	out := released(t, filepath.Join(root(t), "deploy", "release"), release)
	components, err := os.ReadFile(filepath.Join(out, "runtime-extension-components.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := os.ReadFile(filepath.Join(out, "jobs.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// As clusterctl does, with a value for HookJobs and none for the other variables.
	components = regexp.MustCompile(`\$\{HOOKGATE_HOOK_JOBS_NAMESPACE:=[^}]*\}`).ReplaceAll(components, []byte("hookgate-jobs"))
	components = regexp.MustCompile(`\$\{[A-Z_]+:=([^}]*)\}`).ReplaceAll(components, []byte("$1"))
	applyFile(t, "kinds.yaml")
	before = objects(t)
	begun := time.Now()
	hubManifests = kustomize(t, `
resources: [components.yaml, jobs.yaml]
components: [../../deploy/components/self-certificates/hub-beside-core]
`, map[string][]byte{"components.yaml": components, "jobs.yaml": jobs})
	apply(t, hubManifests)
	rolledOut(t, namespace, "hookgate")
	t.Logf("installed in %s", time.Since(begun).Round(time.Second))
	applyFile(t, "caller.yaml")
	secret := func(from, key string) string {
		return kubectl(t, "-n", namespace, "get", "secret", from, "-o", "go-template={{index .data \""+key+"\" | base64decode}}")
	}
	sidecars, err := authority("hookgate-ca") // of which the caller knows the sidecar's
	if err != nil {
		t.Fatal(err)
	}
	client, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]string{"name": "client", "namespace": "callers"},
		"stringData": map[string]string{
			"ca.crt":  secret("hookgate-serving-cert", "ca.crt") + string(sidecars.PEM),
			"tls.crt": secret("hookgate-cluster-api-client", "tls.crt"), "tls.key": secret("hookgate-cluster-api-client", "tls.key"),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	apply(t, client)
	extension, err := files.ReadFile("testdata/extension.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if extension, err = sign(extension); err != nil {
		t.Fatal(err)
	}
	apply(t, extension)
	rolledOut(t, "acme-system", "acme-extension")
	applyFile(t, "register.yaml")
	kubectl(t, "-n", "callers", "wait", "pod/caller", "--for=condition=Ready", "--timeout=60s")
	kubectl(t, "wait", "extensionconfigs.runtime.hookgate.dev/acme", "--for=condition=Discovered", "--timeout=60s")
	// kube-proxy knows an endpoint up to a second after its Pod is ready.
	awaitCalls(t)
}

// rolledOut waits until a Deployment is what its object says.
func rolledOut(t *testing.T, namespace, name string) {
	t.Helper()
	if out, err := tryKubectl(nil, "-n", namespace, "rollout", "status", "deployment/"+name, "--timeout=120s"); err != nil {
		pods, _ := tryKubectl(nil, "-n", namespace, "describe", "pods")
		logs, _ := tryKubectl(nil, "-n", namespace, "logs", "deployment/"+name, "--all-containers", "--tail=30")
		t.Fatalf("%s%v\n%s\n%s", out, err, pods, logs)
	}
}

// pod runs test/cluster/pod in the Pod that calls.
func pod(args ...string) (string, error) {
	return tryKubectl(nil, append([]string{"-n", "callers", "exec", "caller", "--", "/pod"}, args...)...)
}

// hookgate runs the program in the Pod that calls.
func hookgate(args ...string) (string, error) {
	return tryKubectl(nil, append([]string{"-n", "callers", "exec", "caller", "--", "/cli"}, args...)...)
}

// awaitCalls waits until calls can be made.
func awaitCalls(t *testing.T, args ...string) {
	t.Helper()
	process.EventuallySees(t, process.Patience, "calls are answered", func() (string, bool) {
		out, err := pod(append([]string{"load", "-for", "200ms"}, args...)...)
		return out, err == nil
	})
}

// awaitOutput repeats a command of kubectl until its output has a text.
func awaitOutput(t *testing.T, want string, args ...string) {
	t.Helper()
	process.EventuallySees(t, process.Patience, fmt.Sprintf("kubectl %s has %q", strings.Join(args, " "), want), func() (string, bool) {
		got, err := tryKubectl(nil, args...)
		return got, err == nil && strings.Contains(got, want)
	})
}

// counts are what `pod load` counted.
type counts struct {
	Calls, Failed, Wrong int
	Slowest, Failing     string
	log                  string
}

// load starts calls for a time, and returns a function that waits for their end.
func load(t *testing.T, rate int, duration time.Duration, args ...string) func() counts {
	t.Helper()
	var out string
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		out, err = pod(append([]string{"load", "-rate", strconv.Itoa(rate), "-for", duration.String()}, args...)...)
	}()
	return func() counts {
		t.Helper()
		<-done
		if err != nil {
			t.Fatal(err)
		}
		c := counts{log: out}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &c); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		t.Logf("%d calls, %d failed, %d answered wrongly; the slowest took %s", c.Calls, c.Failed, c.Wrong, c.Slowest)
		return c
	}
}

// gateways returns the processes of the hub.
func gateways(t *testing.T) []int {
	t.Helper()
	all, beside := pids(t, "/hookgate serve"), pids(t, sidecarCommand)
	return slices.DeleteFunc(all, func(pid int) bool { return slices.Contains(beside, pid) })
}

// pids returns the processes of containers whose command line begins with this.
func pids(t *testing.T, command string) []int {
	t.Helper()
	var found []int
	entries, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		line, err := os.ReadFile(entry)
		var pid int
		if err == nil && strings.HasPrefix(strings.ReplaceAll(string(line), "\x00", " "), command) {
			if _, err := fmt.Sscanf(entry, "/proc/%d/", &pid); err != nil {
				t.Fatal(err)
			}
			found = append(found, pid)
		}
	}
	return found
}
