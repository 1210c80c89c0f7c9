// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/rights"
)

// TestInstallation runs hookgate infrastructure with the arguments and the permissions of deploy/infrastructure, and a
// gateway, over the whole life of a class, a cluster, a machine and pools. It compares the recorded requests with the
// permissions, in both directions. The extension understands v1beta1 of Cluster API.
func TestInstallation(t *testing.T) {
	i := newInstallation(t, func(i *installation) { i.version = "v1beta1" })
	i.live()
	i.converted()
	i.end()

	granted, err := rights.Granted(i.roles, i.bindings, installedNamespace, installedAccount)
	if err != nil {
		t.Fatal(err)
	}
	used, forbidden := rights.Used(i.requests(), installedUser)
	// An event that comes again is patched, which takes minutes.
	manager := "ClusterRoleBinding hookgate-infrastructure-manager"
	used[manager] = slices.Compact(slices.Sorted(slices.Values(append(used[manager], rights.Of("events.k8s.io", "events", "patch")))))
	if len(forbidden) > 0 {
		t.Errorf("no role allows what the controllers asked for:\n%s", strings.Join(forbidden, "\n"))
	}
	if diff := cmp.Diff(granted, used); diff != "" {
		t.Errorf("rights by binding (-granted +used):\n%s", diff)
	}
}

// live makes the controllers do everything that they do.
func (i *installation) live() {
	t, w := i.t, i.fixture
	t.Helper()
	w.cloud.announce = func(r *infrahooksv1alpha1.DiscoverInfrastructureResponse) {
		r.MachineCapacities = []*infrahooksv1alpha1.MachineCapacity{capacityOf("large", "16", "64Gi", "amd64")}
	}
	w.create(secret("creds", "token", "very-secret"))
	ofIdentity := secret("team-a", "token", "very-secret")
	ofIdentity.Namespace = installedNamespace
	if err := w.client.Create(t.Context(), ofIdentity); err != nil {
		t.Fatal(err)
	}
	identity := newIdentity("team-a", w.namespace)
	w.create(identity)
	class := w.createClass(func(c *infrav1.InfrastructureClass) {
		c.Spec.AllowedNamespaces = &infrav1.AllowedNamespaces{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.WatchLabel: w.namespace}},
		}
	})
	cluster, infra := w.readyCluster("c", func(c *infrav1.HookgateCluster) {
		c.Spec.CredentialsRef = &infrav1.SecretReference{Name: "creds"}
	})
	_, m := w.readyMachine("c", "m")
	template := w.newTemplate("large", cluster, `{"size":"large"}`)
	eventually(w, template, "large", offers(map[string]string{"cpu": "16", "memory": "64Gi"}))
	pool, composed := w.newPool("c", "p", 2)
	eventually(w, composed, "2 machines", settled(2))

	i.listed("clusters", `\bc +c +Ready +\S+ +3/3 `)
	i.listed("pools", `\bp +c +Ready +\S+ +2/2 `)
	i.listed("machines", `\bm +c +Ready +\S+ +1/1 `)
	i.scrape()
	i.autoscaler()

	// A machine of a pool goes with its Machine, if it has one, and otherwise alone.
	one := w.poolMachines("p")[0]
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: one.Name, Annotations: map[string]string{
		clusterv1.DeleteMachineAnnotation: "",
	}}}
	machine.Spec.ClusterName = "c"
	machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: infrav1.GroupVersion.Group, Kind: infrav1.HookgateMachineKind, Name: one.Name,
	}
	w.create(machine)
	update(w, &one, func(m *infrav1.HookgateMachine) {
		m.OwnerReferences = append(m.OwnerReferences, owner("Machine", machine, true))
	})
	update(w, pool, func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To[int32](1) })
	w.gone(machine)
	w.delete(&one) // as Cluster API does after the drain
	eventually(w, composed, "1 machine", settled(1))

	update(w, cluster, func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) })
	eventually(w, m, "paused", func(m *infrav1.HookgateMachine) bool {
		return has(m, infrav1.PausedCondition, metav1.ConditionTrue, "", "")
	})
	update(w, cluster, func(c *clusterv1.Cluster) { c.Spec.Paused = nil })
	w.delete(composed)
	w.gone(composed)
	w.cloud.mu.Lock()
	w.cloud.pools = true
	w.cloud.mu.Unlock()
	update(w, class, func(c *infrav1.InfrastructureClass) { c.Spec.Handlers.DeleteMachine = "h3" }) // asks again
	_, group := w.newPool("c", "g", 2, func(p *infrav1.HookgateMachinePool) {
		p.Spec.InstanceManagement = infrav1.InstanceManagementGroup
	})
	eventually(w, group, "2 instances", settled(2))
	_, instances := w.newPool("c", "i", 1)
	eventually(w, instances, "1 instance", settled(1))
	w.delete(group)
	w.gone(group)
	w.delete(instances)
	w.gone(instances)
	w.delete(m)
	w.gone(m)
	w.delete(infra)
	w.gone(infra)
	_, other := w.readyCluster("of-team-a", func(c *infrav1.HookgateCluster) {
		c.Spec.IdentityRef = &infrav1.IdentityReference{Name: identity.Name}
	})
	w.delete(other)
	w.gone(other)
	w.delete(identity)
	w.gone(identity)
	w.delete(class)
	w.gone(class)
}

// listed checks a row of hookgate get.
func (i *installation) listed(what, row string) {
	i.t.Helper()
	user, err := i.server.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	text, err := user.KubeConfig()
	if err != nil {
		i.t.Fatal(err)
	}
	kubeconfig := filepath.Join(i.t.TempDir(), "kubeconfig")
	i.writeFile(kubeconfig, text)
	out, err := exec.CommandContext(i.t.Context(), process.Program(i.t, "HOOKGATE_BIN"), "get", what,
		"--kubeconfig", kubeconfig, "-n", i.namespace).CombinedOutput()
	if err != nil || !regexp.MustCompile(row).Match(out) {
		i.t.Errorf("hookgate get %s: %v, no %q in\n%s", what, err, row, out)
	}
}

// converted checks that the extension has got the objects in the version that it understands, with references to the
// kinds of Hookgate, which v1beta2 does not give a version.
func (i *installation) converted() {
	i.t.Helper()
	check := func(object string, raw []byte, path ...string) {
		i.t.Helper()
		var o unstructured.Unstructured
		if err := json.Unmarshal(raw, &o.Object); err != nil {
			i.t.Fatalf("%s: %v in %q", object, err, raw)
		}
		ref, _, err := unstructured.NestedString(o.Object, append(path, "infrastructureRef", "apiVersion")...)
		if err != nil || o.GetAPIVersion() != "cluster.x-k8s.io/v1beta1" || ref != infrav1.GroupVersion.String() {
			i.t.Errorf("%s is of %s and refers to %q, %v", object, o.GetAPIVersion(), ref, err)
		}
	}
	machine := calls[*infrahooksv1alpha1.ReconcileMachineRequest](i.cloud)[0].GetSubject()
	check("Cluster", machine.GetCluster().GetRaw(), "spec")
	check("Machine", machine.GetMachine().GetRaw(), "spec")
	pool := calls[*infrahooksv1alpha1.ReconcileMachinePoolRequest](i.cloud)[0].GetSubject()
	check("MachinePool", pool.GetMachinePool().GetRaw(), "spec", "template", "spec")
}

// autoscaler checks that a service account with the role for it may read what the Cluster Autoscaler does: the object of
// a MachinePool's or a MachineDeployment's infrastructureRef, whose resource it makes of the kind. It asks for list and
// watch before.
func (i *installation) autoscaler() {
	t, ctx := i.t, i.t.Context()
	t.Helper()
	n := slices.IndexFunc(i.roles, func(r rights.Role) bool { return r.Name == "hookgate-infrastructure-autoscaler" })
	if n < 0 {
		t.Fatal("deploy/infrastructure has no role for the autoscaler")
	}
	i.bind(i.roles[n], "autoscaler")
	for kind, want := range map[string]bool{
		infrav1.HookgateMachinePoolKind: true, infrav1.HookgateMachineTemplateKind: true, infrav1.HookgateClusterKind: false,
	} {
		for _, verb := range []string{"get", "list", "watch"} {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:" + i.namespace + ":autoscaler",
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Group: infrav1.GroupVersion.Group, Resource: strings.ToLower(kind) + "s", Verb: verb, Namespace: i.namespace,
				},
			}}
			if err := i.client.Create(ctx, review); err != nil || review.Status.Allowed != want {
				t.Errorf("%s %s: allowed %t, %v, want %t", verb, kind, review.Status.Allowed, err, want)
			}
		}
	}
}

// bind gives a service account a ClusterRole that exists, and waits until it counts.
func (i *installation) bind(role rights.Role, account string) {
	i.t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: i.namespace}},
	}
	if err := i.client.Create(i.t.Context(), binding); err != nil {
		i.t.Fatal(err)
	}
	rights.Await(i.t, i.server.Config, []rights.Role{role},
		[]rights.Binding{{Kind: "ClusterRoleBinding", Name: binding.Name, Role: binding.RoleRef}}, i.namespace, account)
}

// scrape reads the metrics as a service account that may, and as another.
func (i *installation) scrape() {
	t, ctx := i.t, i.t.Context()
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "monitoring"}, Rules: []rbacv1.PolicyRule{
		{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
	}}
	if err := i.client.Create(ctx, role); err != nil {
		t.Fatal(err)
	}
	i.bind(rights.Role{Kind: "ClusterRole", Name: role.Name, Rules: role.Rules}, "monitoring")
	// The controllers serve a certificate of their own making, which they know best.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	for name, want := range map[string]int{"monitoring": http.StatusOK, "stranger": http.StatusForbidden} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		i.create(account)
		token := &authenticationv1.TokenRequest{}
		if err := i.client.SubResource("token").Create(ctx, account, token); err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/metrics", i.ports["metrics"]), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token.Status.Token)
		resp, err := (&http.Client{Transport: transport, Timeout: process.Patience}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if closeErr := resp.Body.Close(); err != nil || closeErr != nil {
			t.Fatal(err, closeErr)
		}
		if resp.StatusCode != want || (want == http.StatusOK) != strings.Contains(string(body), "hookgate_infrastructure_objects{") {
			t.Errorf("metrics for %s: %s, want %d", name, resp.Status, want)
		}
	}
}
