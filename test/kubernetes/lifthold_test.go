// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/controllers"
	hookgate "github.com/hookgate/hookgate/gateway"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/serving/shared"
	"github.com/hookgate/hookgate/test/anykind"
	"github.com/hookgate/hookgate/test/process"
)

// user returns a client of a user that has one rule's rights.
func user(t testing.TB, config *rest.Config, c client.Client, name string, rule rbacv1.PolicyRule) client.Client {
	t.Helper()
	create(t, c, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}})
	create(t, c, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	})
	as := rest.CopyConfig(config)
	as.Impersonate.UserName = name
	of, err := client.New(as, client.Options{Scheme: c.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return of
}

// deletes asks a replica, as Cluster API would, whether a Cluster may be deleted, and returns what keeps it.
func deletes(t testing.TB, r *replica, cluster *unstructured.Unstructured) string {
	t.Helper()
	hooks := catalog.New()
	transport := extension.NewProtocols(extension.Config{Catalog: hooks, Codec: codec.New(hooks), LookupHost: lookup})
	defer transport.Close()
	d := hookgate.NewDispatcher(hookgate.Config{
		Catalog: hooks, Versions: hookversion.New(hooks), Registry: r.registry, Namespaces: r.Source, Lifted: r.Lifted,
		Parts: shared.Parts{Codec: codec.New(hooks), Transport: transport.Call},
	})
	raw, err := cluster.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	h, _ := hooks.Lookup(hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "BeforeClusterDelete"})
	got, err := d.Dispatch(t.Context(), hookgate.Request{
		Hook: h, Message: &hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: raw}},
	})
	if err != nil {
		return err.Error()
	}
	answer, _ := got.(*hooksv1alpha1.BeforeClusterDeleteResponse)
	return fmt.Sprintf("%d s: %s", answer.GetRetryAfterSeconds(), answer.GetMessage())
}

// TestLiftHold lifts the hold of an extension by a right over ExtensionPolicies, on both replicas, also after a restart.
// The right over Clusters lifts nothing, and neither does a lift that is not understood. A Cluster of the same name is
// held again.
func TestLiftHold(t *testing.T) {
	if apiServer == nil {
		t.Skipf("%s is not set", assetsVariable)
	}
	config, c := emptyServer(t, filepath.Join("..", "..", "deploy", "crd"))
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		MaxTime: process.ServerPatience, CRDs: []*apiextensionsv1.CustomResourceDefinition{anykind.Of("cluster.x-k8s.io", "v1beta2", "Cluster")},
	}); err != nil {
		t.Fatal(err)
	}
	const name, held = "lifts", "60 s: 3 volumes are left"
	x := newExtension(t)
	var asked atomic.Int32
	x.set(func(x *serverOf) {
		x.handlers = []runtimehooksv1.ExtensionHandler{handler("volumes", "BeforeClusterDelete")}
		x.answer = func([]byte) any {
			asked.Add(1)
			answer := &runtimehooksv1.BeforeClusterDeleteResponse{}
			answer.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("BeforeClusterDeleteResponse"))
			answer.Status, answer.Message, answer.RetryAfterSeconds = runtimehooksv1.ResponseStatusSuccess, "3 volumes are left", 60
			return answer
		}
	})
	create(t, c, newConfig(t, name, x))
	create(t, c, newPolicy(t, name, name, ""))
	made := func() *unstructured.Unstructured {
		cluster := object(t, "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {namespace: default, name: prod}\nspec: {}\n")
		create(t, c, cluster)
		return cluster
	}
	cluster := made()
	begin := func() *replica {
		r := start(t, func(s *controllers.Config) { s.REST = config })
		r.ready(t)
		return r
	}
	a, b := begin(), begin()
	awaitAccepted(t, c, name, "Accepted", `In effect for ExtensionConfig "lifts"`)
	await := func(want string) {
		t.Helper()
		for i, r := range []*replica{a, b} {
			eventually(t, fmt.Sprintf("replica %d: %s", i, want), func() (string, bool) {
				got := deletes(t, r, cluster)
				return got, got == want
			})
		}
	}
	await(held)

	tenant := user(t, config, c, "tenant", rbacv1.PolicyRule{APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"clusters"}, Verbs: []string{"*"}})
	onCall := user(t, config, c, "on-call", rbacv1.PolicyRule{
		APIGroups: []string{"hookgate.dev"}, Resources: []string{"extensionpolicies"}, ResourceNames: []string{name}, Verbs: []string{"get", "patch"},
	})
	lift := func(by client.Client, hookName string) error {
		p := &v1alpha1.ExtensionPolicy{}
		p.Name = name
		return by.Patch(t.Context(), p, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil,
			`{"spec":{"liftedHolds":[{"handler":"volumes.lifts","hook":%q,"cluster":"default/prod","uid":%q}]}}`, hookName, cluster.GetUID())))
	}
	annotated := client.MergeFrom(cluster.DeepCopy())
	cluster.SetAnnotations(map[string]string{v1alpha1.SkipHoldAnnotation: "volumes.lifts, lifts, volumes"})
	if err := tenant.Patch(t.Context(), cluster, annotated); err != nil {
		t.Fatal(err)
	}
	if err := lift(tenant, "BeforeClusterDelete"); !apierrors.IsForbidden(err) {
		t.Errorf("whoever may write Clusters lifts holds: %v", err)
	}
	if err := lift(onCall, "BeforeClusterDelet"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the lift is not understood", func() (string, bool) {
		p := &v1alpha1.ExtensionPolicy{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, p); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(p.Status.Conditions), len(p.Status.Conditions) == 1 && p.Status.Conditions[0].Reason == v1alpha1.InvalidReason
	})
	await(held)

	if err := lift(onCall, "BeforeClusterDelete"); err != nil {
		t.Fatal(err)
	}
	const passes = `0 s: hold lifted by liftedHolds of ExtensionPolicy "lifts": 3 volumes are left`
	await(passes)
	before := asked.Load()
	a.stop()
	a = begin()
	await(passes)
	if asked.Load() < before+2 {
		t.Errorf("the extension is not asked any more")
	}
	want := `Handler "volumes.lifts" holds the Cluster, but the Cluster goes on because of spec.liftedHolds of ExtensionPolicy "lifts"; the handler says: 3 volumes are left`
	eventually(t, "an event says why", func() (string, bool) {
		var list eventsv1.EventList
		if err := c.List(t.Context(), &list, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		var notes []string
		for _, e := range list.Items {
			if e.Regarding.UID == cluster.GetUID() && e.Reason == "HoldLifted" {
				notes = append(notes, e.Note)
			}
		}
		return fmt.Sprint(notes), slices.Contains(notes, want)
	})

	if err := c.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	cluster = made()
	await(held)
}
