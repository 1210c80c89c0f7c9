// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// testServe runs the gateway as its Pod would, with the installed arguments, environment and permissions but other
// ports, and registers an extension.
func testServe(t *testing.T, s *server) {
	deployment := s.find(t, deployments, namespace, "hookgate")
	c := container(t, []*unstructured.Unstructured{deployment})
	account, _, err := unstructured.NestedString(deployment.Object, "spec", "template", "spec", "serviceAccountName")
	if err != nil {
		t.Fatal(err)
	}
	certs := t.TempDir()
	certificates.In(t, certs)
	anyPort := regexp.MustCompile(`^(--[a-z-]+-addr(?:ess)?)=:\d+$`)
	directory := regexp.MustCompile(`^(--[a-z-]+-dir)=/.*`)
	args := []string{}
	for _, a := range c["args"].([]any) {
		arg := strings.ReplaceAll(a.(string), "$(POD_NAMESPACE)", namespace)
		args = append(args, directory.ReplaceAllString(anyPort.ReplaceAllString(arg, "$1=127.0.0.1:0"), "$1="+certs))
	}
	// The last of two flags wins. No configuration of webhooks is left, so the API server does not call them.
	if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--webhook-port=") }) {
		args = append(args, "--webhook-port="+strconv.Itoa(process.FreePort(t)))
	}
	args = append(args, "--kubeconfig="+s.kubeconfigOf(t, account), "--shutdown-delay=0s")
	env := []string{}
	for _, e := range c["env"].([]any) {
		variable := e.(map[string]any)
		value, _ := variable["value"].(string)
		env = append(env, variable["name"].(string)+"="+value)
	}

	cmd := exec.Command(program(t, gatewayVariable), args...)
	cmd.Env = env
	g := process.RunGateway(t, cmd)
	s.apply(t, extensionConfig("unreachable", "", "https://127.0.0.1:1"))
	s.apply(t, extensionPolicy("unreachable", ""))
	s.await(t, extensionConfigs, "unreachable", "Discovered", "False")
	s.await(t, extensionPolicies, "unreachable", "Accepted", "True")
	g.EndWell(t)
	if strings.Contains(g.Output(), "forbidden") {
		t.Errorf("it lacks rights:\n%s", g.Output())
	}
	for _, kind := range []schema.GroupVersionKind{extensionConfigs, extensionPolicies} {
		s.kubectl(t, "", "delete", s.resource(t, kind), "unreachable")
	}
}

// await waits until a condition of a cluster-scoped object has a status.
func (s *server) await(t *testing.T, kind schema.GroupVersionKind, name, condition, status string) {
	t.Helper()
	for end := time.Now().Add(process.Patience); ; time.Sleep(50 * time.Millisecond) {
		conditions, _, err := unstructured.NestedSlice(s.find(t, kind, "", name).Object, "status", "conditions")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == condition && c["status"] == status {
				return
			}
		}
		if time.Now().After(end) {
			t.Errorf("%s %s: %s is not %s: %v", kind.Kind, name, condition, status, conditions)
			return
		}
	}
}

// kubeconfigOf returns a kubeconfig file for the service account.
func (s *server) kubeconfigOf(t *testing.T, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{}
	if err := s.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatalf("token of service account %s: %v", name, err)
	}
	config, err := clientcmd.LoadFromFile(s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}
