// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/internal/network/tunnel/tunneltest"
	"github.com/hookgate/hookgate/test/process"
)

// view sees the status as someone who has the Role hookgate-viewer and nothing else: with a token of the service account,
// and with kubectl hookgate, through the API server and what plays a kubelet, to two Pods of the Deployment, which both are
// the gateway.
func (s *server) view(t *testing.T, g *process.Gateway, certs *devcert.Pair, d *appsv1.Deployment) {
	t.Helper()
	if out, err := kubectl(s.admin, nil, "-n", namespace, "create", "rolebinding", "viewers", "--role=hookgate-viewer", "--user=viewer"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var token string
	eventually(t, "a user with the role makes a token", func() bool { // the API server may not have seen the binding yet
		out, err := kubectl(s.admin, nil, "-n", namespace, "create", "token", "hookgate-viewer", "--duration=10m", "--as=viewer")
		token = strings.TrimSpace(string(out))
		return err == nil
	})
	if out, err := kubectl(s.admin, nil, "-n", namespace, "create", "token", "hookgate", "--as=viewer"); err == nil || !strings.Contains(string(out), "forbidden") {
		t.Errorf("a user with the role makes a token of the gateway: %v: %s", err, out)
	}
	for _, c := range []struct {
		method, path string
		code         int
	}{{http.MethodGet, "/status", http.StatusOK}, {http.MethodGet, "/metrics", http.StatusForbidden}, {http.MethodPost, "/recording", http.StatusForbidden}} {
		code, body := diagnose(t, g, certs, c.method, c.path, token)
		if code != c.code || (code == http.StatusOK) != strings.Contains(body, `"acme"`) {
			t.Errorf("%s %s as hookgate-viewer: %d, want %d: %.200s", c.method, c.path, code, c.code, body)
		}
	}

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	if err := s.client.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(tunneltest.Kubelet(t, map[string]string{"8443": "127.0.0.1" + portOf(g.Diagnostics)}))
	if err := s.client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: d.Spec.Template.Labels}, Spec: *d.Spec.Template.Spec.DeepCopy()}
		pod.Spec.NodeName = node.Name
		if err := s.client.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
		if err := s.client.Status().Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	out, err := s.plugin(t, "get", "extensions", "--context", "management")
	if err != nil || !strings.Contains(out, "acme") || !strings.Contains(out, "This is what hookgate-system/a knows; --gateway hookgate-system/POD queries another replica: b.") {
		t.Errorf("kubectl hookgate get extensions: %v\n%s", err, out)
	}
	out, err = s.plugin(t, "get", "holds")
	if err != nil || out != "No Cluster waits for a handler of hookgate-system/a, hookgate-system/b.\n" { // the one that did is deleted
		t.Errorf("kubectl hookgate get holds: %v\n%s", err, out)
	}
}

// plugin runs the gateway's program as the plug-in of kubectl, with a kubeconfig of the user viewer.
func (s *server) plugin(t *testing.T, args ...string) (string, error) {
	t.Helper()
	folder := t.TempDir()
	if err := os.Symlink(program(t, gatewayVariable), filepath.Join(folder, "kubectl-hookgate")); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(s.admin)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = "viewer"
	}
	config.Contexts["management"] = config.Contexts[config.CurrentContext]
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), filepath.Join(os.Getenv(assetsVariable), "kubectl"), append([]string{"hookgate"}, args...)...)
	c.Env = []string{"KUBECONFIG=" + kubeconfig, "HOME=" + folder, "PATH=" + folder + ":" + os.Getenv("PATH")}
	out, err := c.CombinedOutput()
	return string(out), err
}
