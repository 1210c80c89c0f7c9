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
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// sidecar renders the extension with a gateway as its sidecar.
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

// calm is an extension that leaves discovery to reflection.
type calm struct {
	hooksv1alpha1.UnimplementedLifecycleHooksServiceServer
}

// TestSidecarServes runs the gateway as a sidecar: it finds the extension without a manifest, and the Service points at
// the gateway.
func TestSidecarServes(t *testing.T) {
	objects, c := sidecar(t)
	binary := program(t, gatewayVariable)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	extension := grpc.NewServer()
	hooksv1alpha1.RegisterLifecycleHooksServiceServer(extension, calm{})
	reflection.Register(extension)
	go func() { _ = extension.Serve(l) }() // until it is stopped
	t.Cleanup(extension.Stop)

	args := localArguments(t, c, certificates.New(t), nil)
	beside, err := url.Parse(flags(c)["--sidecar"])
	if err != nil || beside.Scheme != "grpc" || beside.Hostname() != "127.0.0.1" {
		t.Fatalf("--sidecar=%s, which is not beside the gateway: %v", flags(c)["--sidecar"], err)
	}
	args[slices.Index(args, "--sidecar="+beside.String())] = "--sidecar=grpc://" + l.Addr().String()
	g := process.RunGateway(t, exec.Command(binary, args...))
	if found := logged(t, g, "extension discovered"); found["handlers"] != 9.0 {
		t.Errorf("the log says %v, want 9 handlers", found)
	}

	service := one[*corev1.Service](t, objects)
	if got := service.Spec.Ports[0].TargetPort.StrVal; got != "https" || c.Ports[0].Name != got {
		t.Errorf("the Service leads to port %s, the gateway's is %s", got, c.Ports[0].Name)
	}
	if names := one[*certificate](t, objects).Spec.DNSNames; !slices.Contains(names, service.Name+"."+service.Namespace+".svc") {
		t.Errorf("the certificate is for %v, the Service is %s", names, service.Name)
	}
	// All containers of a Pod share its ports.
	for flag, address := range addresses(t, binary, c) {
		if _, port, err := net.SplitHostPort(address); err != nil || port == beside.Port() {
			t.Errorf("%s=%s, %v: the extension is to listen there: %s", flag, address, err, beside)
		}
	}
}

// addresses returns where the gateway listens: the container's flags, or else the gateway's defaults.
func addresses(t *testing.T, binary string, c corev1.Container) map[string]string {
	t.Helper()
	help, err := exec.Command(binary, "serve", "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("serve --help: %v\n%s", err, help)
	}
	lines := regexp.MustCompile(`\n {20,}`).ReplaceAllString(string(help), " ") // texts of flags are wrapped
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^ +(--[a-z-]+-address) string .*\(default "([^"]+)"\)$`).FindAllStringSubmatch(lines, -1) {
		found[m[1]] = m[2]
	}
	if len(found) < 3 {
		t.Fatalf("serve --help lists only these addresses: %v", found)
	}
	delete(found, "--grpc-address") // a sidecar has none by default
	for flag, value := range flags(c) {
		if strings.HasSuffix(flag, "-address") || strings.HasSuffix(flag, "-addr") {
			found[flag] = value
		}
	}
	return found
}

// TestThreeLines applies the page's additions to the plain extension, and compares the result with the overlay.
func TestThreeLines(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "sidecar.md"))
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join("..", "..", "deploy", "overlays", "sidecar")
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(overlay, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	label := regexp.MustCompile("(?m)^```\n( +hookgate.dev/sidecar: .*\n)```$").FindStringSubmatch(string(page))
	if label == nil || strings.Count(read("extension.yaml"), label[1]) != 1 {
		t.Fatalf("the page shows the label as %q, and %s/extension.yaml does not have it once", label, overlay)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(dir, absolute(t, filepath.Join("..", "..")))
	if err != nil {
		t.Fatal(err)
	}
	kustomization := ""
	for _, match := range block.FindAllStringSubmatch(string(page), -1) {
		if strings.HasPrefix(match[1], "# kustomization.yaml\n") {
			kustomization = remote.ReplaceAllString(match[1], filepath.ToSlash(relative)+"/$1")
		}
	}
	writeFile(t, filepath.Join(dir, "kustomization.yaml"), []byte(kustomization))
	writeFile(t, filepath.Join(dir, "certificate.yaml"), []byte(read("certificate.yaml")))
	writeFile(t, filepath.Join(dir, "extension.yaml"), []byte(strings.Replace(read("extension.yaml"), label[1], "", 1)))
	if without := kustomize(t, dir); strings.Contains(string(without), "image: ghcr.io/hookgate/") {
		t.Error("a Deployment without the label has a gateway, too")
	}
	writeFile(t, filepath.Join(dir, "extension.yaml"), []byte(read("extension.yaml")))
	if diff := cmp.Diff(string(kustomize(t, overlay)), string(kustomize(t, dir))); diff != "" {
		t.Errorf("-overlay +page\n%s", diff)
	}
}

// TestNetworkAdmitsCallersOfTheSidecar checks that the NetworkPolicy is that of the Pods, and that it admits what the
// hub's own admits, at the port of hooks alone: without a CA of callers, nothing else decides.
func TestNetworkAdmitsCallersOfTheSidecar(t *testing.T) {
	objects, c := sidecar(t)
	n := one[*networkingv1.NetworkPolicy](t, objects)
	d := one[*appsv1.Deployment](t, objects)
	if diff := cmp.Diff(d.Spec.Template.Labels, n.Spec.PodSelector.MatchLabels); diff != "" {
		t.Errorf("-Pods +NetworkPolicy\n%s", diff)
	}
	hub := one[*networkingv1.NetworkPolicy](t, decode(t, "hub", kustomize(t, filepath.Join("..", "..", "deploy", "overlays", "hub-beside-core"))))
	if len(n.Spec.Ingress) != 1 || !slices.Equal(n.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
		t.Fatalf("NetworkPolicy %+v", n.Spec)
	}
	if diff := cmp.Diff(hub.Spec.Ingress[0].From, n.Spec.Ingress[0].From); diff != "" {
		t.Errorf("-hub +sidecar\n%s", diff)
	}
	ports := n.Spec.Ingress[0].Ports
	named := func(p corev1.ContainerPort) bool { return p.Name == ports[0].Port.StrVal }
	i := slices.IndexFunc(c.Ports, named)
	if len(ports) != 1 || i < 0 || !strings.HasSuffix(flags(c)["--http-address"], ":"+strconv.Itoa(int(c.Ports[i].ContainerPort))) {
		t.Errorf("ports %+v, the container has %+v", ports, c.Ports)
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAPIServerAdmitsTheSidecar applies the example, in a namespace that enforces the restricted profile.
func TestAPIServerAdmitsTheSidecar(t *testing.T) {
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
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: d.Namespace}, Spec: d.Spec.Template.Spec,
	}
	if refused := kubectlApply(s.admin, marshal(t, pod), "--dry-run=server"); refused != "" {
		t.Errorf("the Pod: %s", refused)
	}
}
