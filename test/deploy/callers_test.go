// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// TestCallersHaveCertificates follows the certificate of Cluster API to the authority that the gateway trusts.
func TestCallersHaveCertificates(t *testing.T) {
	objects := install(t, false)
	found := map[string]*certificate{}
	for _, c := range all[*certificate](objects) {
		found[c.Name] = c
	}
	client, ca := found["hookgate-cluster-api-client"], found["hookgate-callers-ca"]
	if client == nil || ca == nil {
		t.Fatalf("certificates %v", found)
	}
	if !slices.Contains(client.Spec.Usages, "client auth") || slices.Contains(client.Spec.Usages, "server auth") || client.Spec.IsCA {
		t.Errorf("the client's certificate is for %v", client.Spec.Usages)
	}
	if !ca.Spec.IsCA || client.Spec.Duration != ca.Spec.Duration {
		t.Errorf("CA %v: the client's certificate is valid for %s, the CA for %s", ca.Spec.IsCA, client.Spec.Duration, ca.Spec.Duration)
	}
	issuers := map[string]*issuer{}
	for _, i := range all[*issuer](objects) {
		issuers[i.Name] = i
	}
	by := issuers[client.Spec.IssuerRef["name"]]
	if by == nil || by.Spec.CA == nil || by.Spec.CA.SecretName != ca.Spec.SecretName {
		t.Errorf("the client's certificate is not signed by the CA of callers: %+v", by)
	}
	if serving := found["hookgate-serving-cert"]; serving.Spec.IssuerRef["name"] == client.Spec.IssuerRef["name"] {
		t.Error("one CA signs servers and callers: a server could call")
	}
}

// withComponent renders the overlay directory with a component.
func withComponent(t *testing.T, component string) []object {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(dir, absolute(t, filepath.Join("..", "..", "deploy")))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "kustomization.yaml"), marshal(t, map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
		"resources": []string{filepath.Join(relative, "overlays/directory")}, "components": []string{filepath.Join(relative, "components", component)},
	}))
	return decode(t, component, kustomize(t, dir))
}

// TestComponentsOfCallers checks that each component changes who may call, and nothing else.
func TestComponentsOfCallers(t *testing.T) {
	mounted := func(objects []object) string {
		for _, s := range one[*appsv1.Deployment](t, objects).Spec.Template.Spec.Volumes[0].Projected.Sources {
			if s.Secret.Name == "hookgate-callers-ca" {
				return s.Secret.Name
			}
		}
		return ""
	}
	anonymous := withComponent(t, "anonymous-callers")
	if _, ok := flags(container(t, one[*appsv1.Deployment](t, anonymous)))["--allow-anonymous-callers"]; !ok || mounted(anonymous) != "" {
		t.Errorf("anonymous-callers: %v, mounts %q", ok, mounted(anonymous))
	}
	own := withComponent(t, "client-certificates")
	for _, c := range all[*certificate](own) {
		if strings.Contains(c.Name, "callers") || strings.Contains(c.Name, "client") {
			t.Errorf("client-certificates: cert-manager would overwrite the Secret with %s", c.Name)
		}
	}
	if mounted(own) == "" {
		t.Error("client-certificates: the gateway asks for no certificates")
	}
}

// TestClusterAPIGetsItsCertificate gives Deployments as Cluster API's are the certificate, and prints what the guide says.
func TestClusterAPIGetsItsCertificate(t *testing.T) {
	if os.Getenv(assetsVariable) == "" {
		t.Skipf("%s does not name a directory with kube-apiserver, etcd and kubectl", assetsVariable)
	}
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```sh\nhookgate callers\n```\n\n```text\n(.*?)```").FindSubmatch(page)
	if shown == nil {
		t.Fatal("the guide does not show the command and what it prints")
	}
	s := newServer(t)
	run := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), program(t, gatewayVariable),
			append([]string{"callers", "--kubeconfig", s.admin}, args...)...).CombinedOutput()
		return string(out), err
	}
	want := func(want string, fails bool, args ...string) {
		t.Helper()
		if got, err := run(args...); got != want || (err != nil) != fails {
			t.Errorf("callers %v: %v\n%s\nwant\n%s", args, err, got, want)
		}
	}
	s.apply(t, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: hookgate-system}\n"))
	want("hookgate: there is no Secret hookgate-system/hookgate-cluster-api-client: cert-manager, or the gateway itself, makes it in the "+
		"gateway's namespace; if the gateway is in another namespace, use --namespace\n", true)
	pair := certificates.New(t)
	certificate := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "hookgate-cluster-api-client", Namespace: namespace},
		Type:       corev1.SecretTypeTLS, Data: map[string][]byte{"ca.crt": pair.CAPEM, "tls.crt": pair.CertPEM, "tls.key": pair.KeyPEM},
	}
	s.apply(t, marshal(t, certificate))
	want("hookgate: no Deployment has the label cluster.x-k8s.io/provider=cluster-api: is Cluster API installed in this cluster?\n", true)
	managers := map[string]string{"capi": "cluster-api", "capi-kubeadm-control-plane": "control-plane-kubeadm", "capd": "infrastructure-docker"}
	for m := range managers {
		s.apply(t, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: "+m+"-system}\n"))
	}
	install := func(m, version string) {
		s.apply(t, []byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: `+m+`-controller-manager, namespace: `+m+`-system, labels: {cluster.x-k8s.io/provider: `+managers[m]+`}}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers:
      - {name: proxy, image: "proxy:latest"}
      - {name: manager, image: "registry.example.com:5000/manager:`+version+`", args: ["--leader-elect"], volumeMounts: [{name: cert, mountPath: /tmp/certs}]}
      volumes: [{name: cert, secret: {secretName: webhook}}]
`))
	}
	for m := range managers {
		install(m, "v1.14.2")
	}
	all := string(shown[1])
	want(strings.ReplaceAll(all, "\n", " (dry run)\n"), false, "--dry-run")
	if got, err := run("--dry-run"); strings.Contains(got, "unchanged") {
		t.Errorf("a dry run has changed something: %v\n%s", err, got)
	}
	want(all, false)
	unchanged := regexp.MustCompile(": .*").ReplaceAllString(all, ": unchanged")
	want(unchanged, false)
	for _, m := range []string{"capi", "capi-kubeadm-control-plane"} {
		secret := &corev1.Secret{}
		if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: m + "-system", Name: "hookgate-client"}, secret); err != nil {
			t.Fatal(err)
		}
		if string(secret.Data["tls.key"]) != string(pair.KeyPEM) || len(secret.Data) != 2 || secret.Type != corev1.SecretTypeTLS {
			t.Errorf("%s: the Secret has not just the client's certificate and key", m)
		}
		pod := s.manager(t, m).Spec.Template.Spec
		given, volume := flags(pod.Containers[1]), pod.Volumes[len(pod.Volumes)-1]
		mount := pod.Containers[1].VolumeMounts[len(pod.Containers[1].VolumeMounts)-1]
		if volume.Secret.SecretName != secret.Name || mount.Name != volume.Name || len(pod.Containers[0].Args) > 0 ||
			!strings.HasPrefix(given["--runtime-extension-client-key-file"], mount.MountPath+"/tls.key") ||
			!strings.HasPrefix(given["--runtime-extension-client-cert-file"], mount.MountPath+"/tls.crt") {
			t.Errorf("%s: flags %v, mount %+v of %+v", m, given, mount, volume)
		}
	}
	if got := flags(s.manager(t, "capd").Spec.Template.Spec.Containers[1]); len(got) > 0 {
		t.Errorf("a manager that calls no hooks has %v", got)
	}
	// An upgrade replaces a Deployment, and cert-manager may have made another certificate.
	if out, err := kubectl(s.admin, nil, "-n", "capi-system", "delete", "deployment", "capi-controller-manager"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	install("capi", "v1.15.0")
	certificate.Data["tls.crt"] = certificates.New(t).CertPEM
	s.apply(t, marshal(t, certificate))
	lines := strings.SplitAfter(all, "\n")
	updated := func(line string) string { return strings.Replace(line, "created", "updated", 1) }
	lineOf := func(i int) string { return strings.SplitAfter(unchanged, "\n")[i] }
	want(updated(lines[0])+lineOf(1)+updated(lines[2])+lines[3], false)
	// The kubeadm control plane knows the flags since v1.12.
	if out, err := kubectl(s.admin, nil, "-n", "capi-kubeadm-control-plane-system", "delete", "deployment", "--all"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	install("capi-kubeadm-control-plane", "v1.11.4")
	const older = "Deployment capi-kubeadm-control-plane-system/capi-kubeadm-control-plane-controller-manager: left alone: before v1.12, it calls no hooks\n"
	want(older+lineOf(2)+lineOf(3), false)
	if out, err := kubectl(s.admin, nil, "-n", "capi-system", "patch", "deployment", "capi-controller-manager", "--type", "json", "-p",
		`[{"op": "replace", "path": "/spec/template/spec/containers/1/args/1", "value": "--runtime-extension-client-cert-file=/mine/tls.crt"}]`); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want(older+"hookgate: patch Deployment capi-system/capi-controller-manager: it already has --runtime-extension-client-cert-file=/mine/tls.crt: "+
		"either add the CA of that client certificate to the gateway's CAs of callers, or remove the flag and try again\n", true)
}

// manager returns the Deployment of a manager.
func (s *server) manager(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	out, err := kubectl(s.admin, nil, "-n", name+"-system", "get", "deployment", name+"-controller-manager", "-o", "json")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	d := &appsv1.Deployment{}
	if err := yaml.Unmarshal(out, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestCallersOfTheDocs starts the gateway with the file of callers that the page shows.
func TestCallersOfTheDocs(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate.md"))
	if err != nil {
		t.Fatal(err)
	}
	file := ""
	for _, match := range block.FindAllStringSubmatch(string(page), -1) {
		if strings.HasPrefix(match[1], "# callers.yaml\n") {
			file = filepath.Join(t.TempDir(), "callers.yaml")
			writeFile(t, file, []byte(match[1]))
		}
	}
	if file == "" {
		t.Fatal("the page shows no file of callers")
	}
	certs := t.TempDir()
	certificates.In(t, certs)
	process.RunGateway(t, exec.Command(program(t, gatewayVariable), append([]string{
		"serve", "--extension-configs=" + t.TempDir(), "--cert-dir=" + certs, "--callers=" + file,
	}, process.AnyPorts()...)...))
}
