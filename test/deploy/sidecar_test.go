// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

// sidecar renders the extension with a gateway beside it.
func sidecar(t *testing.T) ([]object, corev1.Container) {
	t.Helper()
	objects := decode(t, "sidecar", kustomize(t, filepath.Join("..", "..", "deploy", "overlays", "sidecar")))
	containers := one[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == "hookgate" })
	if len(containers) != 2 || i < 0 {
		t.Fatalf("there are %d containers, and hookgate is at %d", len(containers), i)
	}
	return objects, containers[i]
}

// TestSidecarServes runs the gateway as beside an extension: it reads the ConfigMap, and the Service leads to it.
func TestSidecarServes(t *testing.T) {
	objects, c := sidecar(t)
	binary := program(t, gatewayVariable)
	certs := newPair(t)
	mounts := map[string]string{}
	for i := range c.VolumeMounts {
		mounts[c.VolumeMounts[i].Name] = c.VolumeMounts[i].MountPath
	}
	args := localArguments(t, c, certs, map[string]map[string]string{
		mounts["hookgate-extension-configs"]: one[*corev1.ConfigMap](t, objects).Data,
	})
	g := start(t, binary, args)
	if read := g.await(t, "manifests read"); read["errors"] != 0.0 || read["extensionConfigs"] != 1.0 {
		t.Errorf("the log says %v, want 1 ExtensionConfig and no errors", read)
	}
	service := one[*corev1.Service](t, objects)
	if got := service.Spec.Ports[0].TargetPort.StrVal; got != "https" || c.Ports[0].Name != got {
		t.Errorf("the Service leads to port %s, the gateway's is %s", got, c.Ports[0].Name)
	}
	if names := one[*certificate](t, objects).Spec.DNSNames; !slices.Contains(names, service.Name+"."+service.Namespace+".svc") {
		t.Errorf("the certificate is for %v, the Service is %s", names, service.Name)
	}
	for name, text := range one[*corev1.ConfigMap](t, objects).Data {
		config := one[*runtimev1.ExtensionConfig](t, decode(t, name, []byte(text)))
		u, err := url.Parse(config.Spec.ClientConfig.URL)
		if err != nil {
			t.Fatal(err)
		}
		if u.Hostname() != "127.0.0.1" {
			t.Errorf("the gateway calls %s, which is not beside it", u)
		}
		// All containers of a Pod share its ports.
		for flag, address := range addresses(t, binary, c) {
			if _, port, err := net.SplitHostPort(address); err != nil || port == u.Port() {
				t.Errorf("%s=%s, %v: the extension is to listen there: %s", flag, address, err, u)
			}
		}
	}
}

// addresses returns where the gateway listens: what the container says, and otherwise what the gateway says itself.
func addresses(t *testing.T, binary string, c corev1.Container) map[string]string {
	t.Helper()
	help, err := exec.Command(binary, "serve", "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("serve --help: %v\n%s", err, help)
	}
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^ +(--[a-z-]+-address) string .*\(default "([^"]+)"\)$`).FindAllStringSubmatch(string(help), -1) {
		found[m[1]] = m[2]
	}
	if len(found) < 3 {
		t.Fatalf("serve --help tells of these addresses only: %v", found)
	}
	for flag, value := range flags(c) {
		if strings.HasSuffix(flag, "-address") || strings.HasSuffix(flag, "-addr") {
			found[flag] = value
		}
	}
	return found
}

// TestAPIServerTakesTheSidecar applies the example, in a namespace that enforces the restricted profile.
func TestAPIServerTakesTheSidecar(t *testing.T) {
	if os.Getenv(assetsVariable) == "" {
		t.Skipf("%s does not name a directory with kube-apiserver, etcd and kubectl", assetsVariable)
	}
	objects, _ := sidecar(t)
	s := newServer(t)
	for _, o := range objects {
		s.apply(t, o.manifest)
	}
	d := one[*appsv1.Deployment](t, objects)
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: d.Namespace}, Spec: d.Spec.Template.Spec,
	}
	if refused := kubectlApply(s.admin, marshal(t, pod), "--dry-run=server"); refused != "" {
		t.Errorf("the Pod: %s", refused)
	}
}
