// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/test/process"
)

// The environment variables with the paths of programs, and of the folder with Kubernetes' programs.
const (
	clusterctlVariable = "HOOKGATE_CLUSTERCTL"
	kustomizeVariable  = "HOOKGATE_KUSTOMIZE"
	releaseVariable    = "HOOKGATE_RELEASE"
	gatewayVariable    = "HOOKGATE_BIN"
	assetsVariable     = "KUBEBUILDER_ASSETS"
)

const (
	providerLabel  = "runtime-extension-hookgate"
	componentsFile = "runtime-extension-components.yaml"

	// The CRDs that Cluster API's components and ours need are in this module.
	certManagerModule  = "github.com/cert-manager/cert-manager"
	certManagerVersion = "v1.21.2"
)

// program returns the path in an environment variable.
func program(t testing.TB, variable string) string {
	t.Helper()
	path := process.Program(t, variable)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return path
}

// release runs the program behind `make release`, and returns the folder with the files of the release.
func release(t testing.TB, version string, args ...string) (dir, stderr string, err error) {
	t.Helper()
	dir = t.TempDir()
	var errOut bytes.Buffer
	cmd := exec.Command(program(t, releaseVariable), append([]string{
		"-version", version, "-kustomize", program(t, kustomizeVariable),
		"-source", filepath.Join("..", "..", "deploy", "release"), "-output", dir,
	}, args...)...)
	cmd.Stderr = &errOut
	err = cmd.Run()
	return dir, errOut.String(), err
}

// released is release, and fails the test on an error.
func released(t testing.TB, version string) string {
	t.Helper()
	dir, stderr, err := release(t, version)
	if err != nil {
		t.Fatalf("release %s: %v\n%s", version, err, stderr)
	}
	return dir
}

// repository is a folder of providers, and the clusterctl configuration that uses it.
type repository struct {
	dir    string
	config map[string]any
}

// provider is an entry of clusterctl's configuration.
type provider struct {
	Name string `json:"name"`
	Type string `json:"type"`
	URL  string `json:"url"`
}

// newRepository returns a repository with some releases of the gateway and, optionally, with Cluster API's providers
// and cert-manager.
func newRepository(t testing.TB, everything bool, versions ...string) *repository {
	t.Helper()
	r := &repository{dir: t.TempDir(), config: map[string]any{}}
	for _, version := range versions {
		r.add(t, version)
	}
	providers := []provider{{
		Name: "hookgate", Type: "RuntimeExtensionProvider", URL: r.url(providerLabel, "latest", componentsFile),
	}}
	if everything {
		providers = append(providers, r.addClusterAPI(t)...)
		r.addCertManager(t)
	}
	r.config["providers"] = providers
	return r
}

func (r *repository) url(provider, version, file string) string {
	return "file://" + filepath.ToSlash(filepath.Join(r.dir, provider, version, file))
}

func (r *repository) write(t testing.TB, provider, version, file string, content []byte) {
	t.Helper()
	path := filepath.Join(r.dir, provider, version, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// add adds a release of the gateway.
func (r *repository) add(t testing.TB, version string) {
	t.Helper()
	dir := released(t, version)
	for _, file := range []string{componentsFile, "metadata.yaml"} {
		r.write(t, providerLabel, version, file, read(t, filepath.Join(dir, file)))
	}
}

// addClusterAPI adds Cluster API's own providers, as in its releases except for the image's tag.
func (r *repository) addClusterAPI(t testing.TB) []provider {
	t.Helper()
	module := module(t, "-C", filepath.Join("..", "..", "tools", "clusterctl"), "mod", "download", "-json",
		"sigs.k8s.io/cluster-api")
	var providers []provider
	for _, p := range []struct{ folder, name, label, kind, file string }{
		{"core", "cluster-api", "cluster-api", "CoreProvider", "core-components.yaml"},
		{"bootstrap/kubeadm", "kubeadm", "bootstrap-kubeadm", "BootstrapProvider", "bootstrap-components.yaml"},
		{"controlplane/kubeadm", "kubeadm", "control-plane-kubeadm", "ControlPlaneProvider", "control-plane-components.yaml"},
	} {
		folder := filepath.Join(module.Dir, filepath.FromSlash(p.folder), "config", "default")
		components, err := exec.Command(program(t, kustomizeVariable), "build", folder).Output()
		if err != nil {
			t.Fatalf("kustomize build %s: %v", p.folder, err)
		}
		r.write(t, p.label, module.Version, p.file, components)
		r.write(t, p.label, module.Version, "metadata.yaml", read(t, filepath.Join(module.Dir, "metadata.yaml")))
		providers = append(providers, provider{Name: p.name, Type: p.kind, URL: r.url(p.label, module.Version, p.file)})
	}
	return providers
}

// addCore adds another version of Cluster API core: the components of its release, with the tag of the version.
func (r *repository) addCore(t testing.TB, version string) {
	t.Helper()
	module := module(t, "-C", filepath.Join("..", "..", "tools", "clusterctl"), "mod", "download", "-json",
		"sigs.k8s.io/cluster-api")
	const label, file = "cluster-api", "core-components.yaml"
	from := filepath.Join(r.dir, label, module.Version)
	image := regexp.MustCompile(`(image: \S*/cluster-api-controller\S*):\S+`)
	if components := read(t, filepath.Join(from, file)); image.Match(components) {
		r.write(t, label, version, file, image.ReplaceAll(components, []byte("${1}:"+version)))
	} else {
		t.Fatal("no image of the controller in the components of Cluster API core")
	}
	r.write(t, label, version, "metadata.yaml", read(t, filepath.Join(from, "metadata.yaml")))
}

// addCertManager adds cert-manager's API without cert-manager: clusterctl only waits until its objects can be created.
func (r *repository) addCertManager(t testing.TB) {
	t.Helper()
	crds, err := filepath.Glob(filepath.Join(module(t, "mod", "download", "-json",
		certManagerModule+"@"+certManagerVersion).Dir, "deploy", "crds", "*.yaml"))
	if err != nil || len(crds) == 0 {
		t.Fatalf("CRDs of cert-manager: %d files, %v", len(crds), err)
	}
	manifest := []byte("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: cert-manager\n")
	for _, crd := range crds {
		manifest = append(append(manifest, "---\n"...), read(t, crd)...)
	}
	r.write(t, "cert-manager", certManagerVersion, "cert-manager.yaml", manifest)
	r.config["cert-manager"] = map[string]string{
		"url": r.url("cert-manager", certManagerVersion, "cert-manager.yaml"), "version": certManagerVersion, "timeout": process.Patience.String(),
	}
}

// goModule is go's description of a module.
type goModule struct{ Dir, Version, Error string }

// module runs a go command that downloads a module, unless it is in Go's cache, and describes it.
func module(t testing.TB, args ...string) goModule {
	t.Helper()
	out, err := exec.Command("go", args...).Output()
	var m goModule
	if e := json.Unmarshal(out, &m); e != nil || err != nil || m.Dir == "" {
		t.Fatalf("go %s: %v %v %s", strings.Join(args, " "), err, e, m.Error)
	}
	return m
}

// clusterctl runs clusterctl with the repository and some environment variables, and returns what it printed.
func (r *repository) clusterctl(t testing.TB, env []string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := r.command(t, env, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	return out.String(), errOut.String(), err
}

// command returns the command that clusterctl runs.
func (r *repository) command(t testing.TB, env []string, args ...string) *exec.Cmd {
	t.Helper()
	config, err := yaml.Marshal(r.config)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	path := filepath.Join(home, "clusterctl.yaml")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program(t, clusterctlVariable),
		append([]string{"--config", path}, args...)...)
	// Only this: no settings of the user, and no access to the network. Loopback is never proxied.
	cmd.Env = append([]string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + home, "PATH=" + os.Getenv("PATH"),
		"CLUSTERCTL_DISABLE_VERSIONCHECK=true", "GOPROXY=off",
		"HTTP_PROXY=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1",
	}, env...)
	return cmd
}

// must is clusterctl, and fails the test on an error.
func (r *repository) must(t testing.TB, env []string, args ...string) string {
	t.Helper()
	stdout, stderr, err := r.clusterctl(t, env, args...)
	if err != nil {
		t.Fatalf("clusterctl %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	return stdout
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
