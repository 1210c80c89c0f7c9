// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hookgate/hookgate/controllers"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/convert"
)

const providerGroup = "infrastructure.cluster.x-k8s.io"

// definition returns a provider's CustomResourceDefinition with labels.
func definition(kind string, labels map[string]string) *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{}
	plural := strings.ToLower(kind) + "s"
	d.Name, d.Labels = plural+"."+providerGroup, labels
	d.Annotations = map[string]string{"large": strings.Repeat("x", 10_000)}
	d.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: providerGroup, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural,
			Singular: strings.ToLower(kind)},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		}},
	}
	return d
}

// versionOf returns the version of references to a kind, or why it is unknown.
func versionOf(references *convert.References, kind string) string {
	v, err := references.APIVersion(providerGroup, kind)
	if err != nil {
		return err.Error()
	}
	return strings.TrimPrefix(v, providerGroup+"/")
}

// ownVersion returns the version of references to a kind of Hookgate's, or why it is unknown.
func ownVersion(references *convert.References) string {
	v, err := references.APIVersion(infrav1.GroupVersion.Group, infrav1.HookgateMachineKind)
	if err != nil {
		return err.Error()
	}
	return v
}

// References follow the labels of CustomResourceDefinitions, which a ready replica knows completely, also if it only
// reads.
func TestDefinitions(t *testing.T) {
	_, c := connect(t)
	if err := apiextensionsv1.AddToScheme(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	before := definition("AcmeCluster", map[string]string{"cluster.x-k8s.io/v1beta1": "v1alpha1_v1", "other": "x"})
	create(t, c, before)
	references := map[string]*convert.References{"leader": convert.NewReferences(), "reader": convert.NewReferences()}
	for name, known := range references {
		r := start(t, func(c *controllers.Config) { c.References, c.ReadOnly = known, name == "reader" })
		r.ready(t)
		if got := versionOf(known, "AcmeCluster"); got != "v1" {
			t.Errorf("%s: when it is ready, the version is %s, want v1", name, got)
		}
		if got := versionOf(known, "DockerCluster"); got != "v1beta2" {
			t.Errorf("%s: the version of a kind of Cluster API's is %s, want v1beta2", name, got)
		}
		if got, want := ownVersion(known), infrav1.GroupVersion.String(); got != want {
			t.Errorf("%s: the version of a kind of Hookgate's is %s, want %s", name, got, want)
		}
	}
	knows := func(kind, want string) {
		t.Helper()
		for name, known := range references {
			eventually(t, name+": the version of "+kind+" is "+want, func() (string, bool) {
				got := versionOf(known, kind)
				return got, strings.Contains(got, want)
			})
		}
	}
	relabel := func(labels map[string]string) {
		t.Helper()
		patch := client.MergeFrom(before.DeepCopy())
		before.Labels = labels
		if err := c.Patch(t.Context(), before, patch); err != nil {
			t.Fatal(err)
		}
	}
	relabel(map[string]string{"cluster.x-k8s.io/v1beta1": "v1", "cluster.x-k8s.io/v1beta2": "v2"})
	knows("AcmeCluster", "v2")
	relabel(map[string]string{"other": "y"})
	knows("AcmeCluster", "has neither label")
	create(t, c, definition("LateCluster", map[string]string{"cluster.x-k8s.io/v1beta2": "v3"}))
	knows("LateCluster", "v3")
	if err := c.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	knows("AcmeCluster", "install the CustomResourceDefinition")
}

// held is a transport to the API server that delays requests for CustomResourceDefinitions.
type held struct {
	next    http.RoundTripper
	waiting chan struct{} // closed once a request waits
	once    *sync.Once
	release chan struct{}
}

func (h held) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/customresourcedefinitions") {
		h.once.Do(func() { close(h.waiting) })
		select {
		case <-h.release:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return h.next.RoundTrip(r)
}

// TestDefinitionsAreWaitedFor: a gateway is not ready, and so gets no calls, before it knows the versions of
// references.
func TestDefinitionsAreWaitedFor(t *testing.T) {
	_, c := connect(t)
	if err := apiextensionsv1.AddToScheme(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	create(t, c, definition("AwaitedCluster", map[string]string{"cluster.x-k8s.io/v1beta2": "v1"}))
	references := convert.NewReferences()
	h := held{waiting: make(chan struct{}), once: &sync.Once{}, release: make(chan struct{})}
	r := start(t, func(c *controllers.Config) {
		c.References = references
		c.REST.Wrap(func(next http.RoundTripper) http.RoundTripper { h.next = next; return h })
	})
	<-h.waiting
	select {
	case <-r.registry.Ready():
		t.Error("it is ready before it has read CustomResourceDefinitions")
	case <-time.After(time.Second): // it takes a tenth of that otherwise
	}
	close(h.release)
	r.ready(t)
	if got := versionOf(references, "AwaitedCluster"); got != "v1" {
		t.Errorf("when it is ready, the version is %s, want v1", got)
	}
}

// A gateway that may not read CustomResourceDefinitions logs that once and becomes ready with its built-in versions; a
// permission granted later takes effect.
func TestDefinitionsThatMayNotBeRead(t *testing.T) {
	_, c := connect(t)
	for _, add := range []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(c.Scheme()); err != nil {
			t.Fatal(err)
		}
	}
	create(t, c, definition("HiddenCluster", map[string]string{"cluster.x-k8s.io/v1beta2": "v7"}))
	const user = "without-definitions"
	added, err := apiServer.AddUser(envtest.User{Name: user}, nil)
	if err != nil {
		t.Fatal(err)
	}
	grant(t, c, user, rbacv1.PolicyRule{APIGroups: []string{"runtime.cluster.x-k8s.io"},
		Resources: []string{"extensionconfigs", "extensionconfigs/status"}, Verbs: []string{"list", "watch", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{"hookgate.dev"}, Resources: []string{"clusterrecords", "extensionpolicies", "extensionrolloutrecords", "extensionrollouts", "handlerchains", "hookjobs", "hookrules"},
			Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces", "secrets"},
			Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"},
			Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"},
			Verbs: []string{"create", "patch"}})
	for _, readOnly := range []bool{true, false} {
		references := convert.NewReferences()
		r := start(t, func(s *controllers.Config) {
			s.REST, s.References, s.ReadOnly = rest.CopyConfig(added.Config()), references, readOnly
		})
		r.ready(t)
		create(t, c, newConfig(t, "no-definitions", newExtension(t, "a")))
		if !readOnly {
			awaitCondition(t, c, "no-definitions", discoveredCondition, metav1.ConditionTrue, "")
		}
		if got := versionOf(references, "DockerCluster"); got != "v1beta2" {
			t.Errorf("the version of a kind of Cluster API's is %s, want v1beta2", got)
		}
		if got, want := ownVersion(references), infrav1.GroupVersion.String(); got != want {
			t.Errorf("the version of a kind of Hookgate's is %s, want %s", got, want)
		}
		if got := versionOf(references, "HiddenCluster"); !strings.Contains(got, "cannot look up the version") {
			t.Errorf("the version of a kind that it cannot know is %s", got)
		}
		const advice = "allow the gateway's service account to list and watch customresourcedefinitions of apiextensions.k8s.io"
		eventually(t, "the log says "+advice, func() (string, bool) {
			return r.log.String(), strings.Contains(r.log.String(), advice)
		})
		if strings.Count(r.log.String(), advice) != 1 {
			t.Errorf("the log does not say once: %s", advice)
		}
		if readOnly {
			r.stop()
			if err := c.Delete(t.Context(), get(t, c, "no-definitions")); err != nil {
				t.Fatal(err)
			}
			continue
		}
		grant(t, c, user+"-more", rbacv1.PolicyRule{APIGroups: []string{"apiextensions.k8s.io"},
			Resources: []string{"customresourcedefinitions"}, Verbs: []string{"list", "watch"}})
		eventually(t, "the right takes effect", func() (string, bool) {
			got := versionOf(references, "HiddenCluster")
			return got, got == "v7"
		})
	}
}

// grant gives the user, whose name is the prefix of the binding's, a permission until the end of the test.
func grant(t testing.TB, c client.Client, name string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{Rules: rules}
	role.Name = name
	create(t, c, role)
	binding := &rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
		Name: name}}
	binding.Name = name
	binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind,
		Name: strings.TrimSuffix(name, "-more")}}
	create(t, c, binding)
}
