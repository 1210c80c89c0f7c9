// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
)

// asks returns the message of a rule's answer about the Cluster n/c, or the kind of its error.
func (r *replica) asks(t testing.TB, rule string) string {
	t.Helper()
	reg, ok := r.registry.Snapshot().Registration(rule)
	if !ok {
		return "no such rule"
	}
	got, err := reg.InProcess.Answer(t.Context(), &hooksv1alpha1.BeforeClusterUpgradeRequest{
		Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"namespace":"n","name":"c"}}`)},
	}, policy.Guard{})
	if err != nil {
		return hook.KindOf(err).String()
	}
	answer, _ := got.(*hooksv1alpha1.BeforeClusterUpgradeResponse)
	return answer.GetMessage()
}

// ruleRights returns what hookgate rule rbac prints for the rules of the cluster.
func ruleRights(t testing.TB, kubeconfig, account string) (rights []client.Object) {
	t.Helper()
	program := os.Getenv(gatewayVariable)
	if program == "" {
		t.Skipf("%s does not name a program: run `make test`, which builds it", gatewayVariable)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, "rule", "rbac", "--kubeconfig", kubeconfig, "--service-account", account)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	for document := range strings.SplitSeq(strings.TrimPrefix(string(out), "---\n"), "---\n") {
		rights = append(rights, object(t, document))
	}
	return rights
}

// A rule reads a ConfigMap and a list as they change. Until the gateway may read them, it answers nothing, and the
// condition says why. What hookgate rule rbac prints is enough.
func TestRuleParams(t *testing.T) {
	_, c := connect(t)
	const namespace, account = "rule-params", "gateway"
	create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	all := []string{"*"}
	create(t, c, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "rule-params-others"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"runtime.cluster.x-k8s.io", "hookgate.dev", "discovery.k8s.io", "events.k8s.io"}, Resources: all, Verbs: all},
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: all},
		},
	})
	user := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}
	create(t, c, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "rule-params-others"}, Subjects: []rbacv1.Subject{user},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "rule-params-others"},
	})
	r := start(t, func(config *controllers.Config) {
		config.REST.Impersonate.UserName = "system:serviceaccount:" + namespace + ":" + account
		config.REST.Impersonate.Groups = []string{"system:authenticated"}
	})
	rule := newRule(t, "params", "")
	err := yaml.UnmarshalStrict([]byte(`
hook: BeforeClusterUpgrade
params:
- name: freeze
  object: {apiVersion: v1, kind: ConfigMap, namespace: rule-params, name: freeze}
- name: teams
  objects: {apiVersion: v1, kind: ConfigMap, namespace: rule-params, selector: {matchLabels: {team: "true"}}}
hold:
- if: params.freeze.?data.?frozen.orValue("") == "true" || params.teams.size() > 0
  message: 'params.freeze == null ? "held for " + params.teams[0].metadata.name : "frozen"'
`), &rule.Spec)
	if err != nil {
		t.Fatal(err)
	}
	rule.Spec.Fail = nil
	audited := rule.DeepCopy()
	audited.Name, audited.Spec.Action = "params-audit", v1alpha1.HookRuleAudit
	create(t, c, audited)
	awaitRule(t, c, "params-audit", v1alpha1.ParamsNotReadyReason, "The answer that it would give is not known: the gateway is not allowed to ")
	create(t, c, rule)
	awaitRule(t, c, "params", v1alpha1.ParamsNotReadyReason,
		`Calls fail with NotReady: the gateway is not allowed to list and watch configmaps, and so cannot read ConfigMap "rule-params/freeze": apply what "hookgate rule rbac" prints`)
	if got := r.asks(t, "params"); got != "NotReady" {
		t.Errorf("without rights: got %q", got)
	}

	config, _ := connect(t)
	for _, right := range ruleRights(t, kubeconfigOf(t, config), namespace+"/"+account) {
		create(t, c, right)
	}
	awaitRule(t, c, "params", "Ready", "")
	awaits := func(want string) {
		t.Helper()
		eventually(t, "it answers "+want, func() (string, bool) { got := r.asks(t, "params"); return got, got == want })
	}
	awaits("")
	put := func(name string, labels, data map[string]string) client.Object {
		t.Helper()
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Data: data}
		create(t, c, o)
		return o
	}
	put("other", nil, nil)
	put("red", map[string]string{"team": "true"}, nil)
	awaits("held for red")
	freeze := put("freeze", nil, map[string]string{"frozen": "true"})
	awaits("frozen")
	if err := c.Delete(t.Context(), freeze); err != nil {
		t.Fatal(err)
	}
	awaits("held for red")
}
