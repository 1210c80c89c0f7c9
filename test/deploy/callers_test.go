// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/base64"
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

// componentsOfCallers renders the overlay directory with a component.
func componentsOfCallers(t *testing.T, component string) []object {
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
	anonymous := componentsOfCallers(t, "anonymous-callers")
	if _, ok := flags(container(t, one[*appsv1.Deployment](t, anonymous)))["--allow-anonymous-callers"]; !ok || mounted(anonymous) != "" {
		t.Errorf("anonymous-callers: %v, mounts %q", ok, mounted(anonymous))
	}
	own := componentsOfCallers(t, "client-certificates")
	for _, c := range all[*certificate](own) {
		if strings.Contains(c.Name, "callers") || strings.Contains(c.Name, "client") {
			t.Errorf("client-certificates: cert-manager would overwrite the Secret with %s", c.Name)
		}
	}
	if mounted(own) == "" {
		t.Error("client-certificates: the gateway asks for no certificates")
	}
}

// TestGuideGivesClusterAPIItsCertificate runs the guide's commands on a Deployment as Cluster API's are.
func TestGuideGivesClusterAPIItsCertificate(t *testing.T) {
	if os.Getenv(assetsVariable) == "" {
		t.Skipf("%s does not name a directory with kube-apiserver, etcd and kubectl", assetsVariable)
	}
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile("(?s)```sh\n(for manager in .*?)```").FindSubmatch(page)
	if commands == nil {
		t.Fatal("the guide has no commands for Cluster API's managers")
	}
	s := newServer(t)
	s.apply(t, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: hookgate-system}\n"))
	pair := newPair(t)
	s.apply(t, marshal(t, &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "hookgate-cluster-api-client", Namespace: namespace},
		Type:       corev1.SecretTypeTLS, Data: map[string][]byte{"ca.crt": pair.CAPEM, "tls.crt": pair.CertPEM, "tls.key": pair.KeyPEM},
	}))
	managers := []string{"capi", "capi-kubeadm-control-plane"}
	for _, m := range managers {
		s.apply(t, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: "+m+"-system}\n"))
		s.apply(t, []byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: `+m+`-controller-manager, namespace: `+m+`-system}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers:
      - {name: manager, image: "manager:latest", args: ["--leader-elect"], volumeMounts: [{name: cert, mountPath: /tmp/certs}]}
      volumes: [{name: cert, secret: {secretName: webhook}}]
`))
	}
	script := exec.Command("bash", "-euo", "pipefail", "-c", string(commands[1]))
	script.Dir = absolute(t, filepath.Join("..", ".."))
	script.Env = append(os.Environ(), "KUBECONFIG="+s.admin, "PATH="+os.Getenv(assetsVariable)+":"+os.Getenv("PATH"))
	if out, err := script.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, m := range managers {
		secret := &corev1.Secret{}
		if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: m + "-system", Name: "hookgate-client"}, secret); err != nil {
			t.Fatal(err)
		}
		if base64.StdEncoding.EncodeToString(secret.Data["tls.key"]) != base64.StdEncoding.EncodeToString(pair.KeyPEM) || secret.Data["ca.key"] != nil {
			t.Errorf("%s: the Secret has not the client's key", m)
		}
		out, err := kubectl(s.admin, nil, "-n", m+"-system", "get", "deployment", m+"-controller-manager", "-o", "json")
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		d := &appsv1.Deployment{}
		if err := yaml.Unmarshal(out, d); err != nil {
			t.Fatal(err)
		}
		pod := d.Spec.Template.Spec
		given, volume := flags(pod.Containers[0]), pod.Volumes[len(pod.Volumes)-1]
		mount := pod.Containers[0].VolumeMounts[len(pod.Containers[0].VolumeMounts)-1]
		if volume.Secret.SecretName != secret.Name || mount.Name != volume.Name ||
			!strings.HasPrefix(given["--runtime-extension-client-key-file"], mount.MountPath+"/tls.key") ||
			!strings.HasPrefix(given["--runtime-extension-client-cert-file"], mount.MountPath+"/tls.crt") {
			t.Errorf("%s: flags %v, mount %+v of %+v", m, given, mount, volume)
		}
	}
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
	if err := newPair(t).WriteDir(certs); err != nil {
		t.Fatal(err)
	}
	process.RunGateway(t, exec.Command(program(t, gatewayVariable), append([]string{
		"serve", "--extension-configs=" + t.TempDir(), "--cert-dir=" + certs, "--callers=" + file,
	}, process.AnyPorts()...)...))
}
