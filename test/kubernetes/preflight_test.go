// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/test/anykind"
	"github.com/hookgate/hookgate/test/process"
)

// preflight runs the command, and returns its exit status and output.
func preflight(t *testing.T, kubeconfig string, args ...string) (code int, out, errOut string) {
	t.Helper()
	program := os.Getenv(gatewayVariable)
	if program == "" {
		t.Skipf("%s does not name a program: run `make test`, which builds it", gatewayVariable)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program,
		append([]string{"preflight", "--kubeconfig", kubeconfig, "--for", "cluster-api=v1.14.0"}, args...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// says checks the exit status, and texts in the output and in the errors.
func says(t *testing.T, kubeconfig string, args []string, code int, out, errOut []string) {
	t.Helper()
	gotCode, gotOut, gotErr := preflight(t, kubeconfig, args...)
	if gotCode != code {
		t.Errorf("%v: exit status %d, want %d", args, gotCode, code)
	}
	for _, part := range []struct {
		got  string
		want []string
	}{{gotOut, out}, {gotErr, errOut}} {
		for _, want := range part.want {
			if !strings.Contains(part.got, want) {
				t.Errorf("%v: no %q in\n%s", args, want, part.got)
			}
		}
	}
}

// known returns an ExtensionConfig of Cluster API's group with the named handlers in its status.
func known(t *testing.T, c client.Client, name string, hooks map[string]string,
	labels map[string]string) *runtimev1.ExtensionConfig {
	t.Helper()
	config := &runtimev1.ExtensionConfig{}
	config.Name, config.Labels = name, labels
	config.Spec.ClientConfig.URL = "https://" + name + ".example.com"
	create(t, c, config)
	for handler, hook := range hooks {
		config.Status.Handlers = append(config.Status.Handlers, runtimev1.ExtensionHandler{
			Name: handler + "." + name, TimeoutSeconds: 10, FailurePolicy: runtimev1.FailurePolicyFail,
			RequestHook: runtimev1.GroupVersionHook{APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: hook},
		})
	}
	if len(hooks) > 0 {
		if err := c.Status().Update(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	return config
}

func policyFor(name, target, handler, version string, labels map[string]string) *v1alpha1.ExtensionPolicy {
	p := &v1alpha1.ExtensionPolicy{}
	p.Name, p.Labels = name, labels
	p.Spec.TargetRef = v1alpha1.TargetReference{Name: target, Handler: handler}
	p.Spec.ClusterAPIVersion = v1alpha1.ClusterAPIVersion(version)
	return p
}

// TestPreflight examines a real API server, from an empty one to one whose extensions are ready for the upgrade.
func TestPreflight(t *testing.T) {
	config, c := emptyServer(t)
	kubeconfig := kubeconfigOf(t, config)
	says(t, kubeconfig, nil, 1, nil, []string{"the API server has no ExtensionConfig in runtime.cluster.x-k8s.io/v1beta2 and runtime.hookgate.dev/v1beta2; install Cluster API or the gateway\n"})

	crds := filepath.Join("..", "..", "deploy", "crd")
	install := func(options envtest.CRDInstallOptions) {
		t.Helper()
		options.ErrorIfPathMissing, options.MaxTime = true, process.ServerPatience
		if _, err := envtest.InstallCRDs(config, options); err != nil {
			t.Fatal(err)
		}
	}
	install(envtest.CRDInstallOptions{Paths: []string{filepath.Join(crds,
		"runtime.cluster.x-k8s.io_extensionconfigs.yaml")}})
	// Without the kind ExtensionPolicy there are no policies, and without clusterctl the running version is unknown.
	known(t, c, "acme", map[string]string{"create": "BeforeClusterCreate", "can": "CanUpdateMachine"}, nil)
	late := known(t, c, "late", nil, nil)
	says(t, kubeconfig, nil, 1, []string{"warn      create.acme   BeforeClusterCreate   not-stated", "unknown   late",
		"it has not been discovered\n", "2 handlers of 2 ExtensionConfigs"},
		[]string{"The release of Cluster API that runs now is not known: there is no clusterctl Provider object for Cluster API. Name it with --from cluster-api=VERSION.\n",
			"hookgate: cluster-api=v1.14: 1 finding of level unknown\n"})
	if err := c.Delete(t.Context(), late); err != nil {
		t.Fatal(err)
	}

	install(envtest.CRDInstallOptions{Paths: []string{filepath.Join(crds, "hookgate.dev_extensionpolicies.yaml")}, CRDs: []*apiextensionsv1.CustomResourceDefinition{anykind.Of("clusterctl.cluster.x-k8s.io", "v1alpha3", "Provider")}})
	create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "capi-system"}})
	create(t, c, installedProvider("infrastructure-docker", "InfrastructureProvider", "docker", "v1.13.0"))
	create(t, c, installedProvider("cluster-api", "CoreProvider", "cluster-api", "v1.12.4"))
	says(t, kubeconfig, nil, 1, []string{"break   create.acme   BeforeClusterCreate   objects-change",
		"name: acme-cluster-api\n", "name: acme-can-cluster-api\n",
		"from cluster-api=v1.12 (Provider capi-system/cluster-api)"}, []string{"hookgate: cluster-api=v1.14: 1 finding of level break\n"})
	says(t, kubeconfig, []string{"--from", "cluster-api=v1.13.0"}, 0, []string{"from cluster-api=v1.13 (--from)"}, nil)
	says(t, kubeconfig, []string{"-o", "sarif"}, 1, []string{`"fullyQualifiedName": "handler/create.acme"`}, nil)

	create(t, c, policyFor("all", "acme", "", "v1beta1", nil))
	says(t, kubeconfig, nil, 0, []string{"never-sent", "members-lost", "apply ExtensionPolicy acme-can-cluster-api"},
		nil)
	create(t, c, policyFor("can", "acme", "can", "v1beta2", nil))
	create(t, c, policyFor("lost", "nobody", "", "v1beta1", nil))
	says(t, kubeconfig, nil, 0, []string{"0 break, 0 degrade, 3 warn, 0 ok", "policy-ignored",
		`there is no ExtensionConfig, HookRule or HookJob "nobody"`}, nil)

	// Clusters refer to providers' kinds, whose CustomResourceDefinitions may not state which version follows which
	// contract.
	install(envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{anykind.Of("cluster.x-k8s.io",
		"v1beta2", "Cluster"), anykind.Of("infrastructure.acme.io", "v7", "AcmeCluster")}})
	create(t, c, object(t, `{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: c, namespace: default}, spec: {
		controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: c}, infrastructureRef: {apiGroup: infrastructure.acme.io, kind: AcmeCluster, name: c}}}`))
	says(t, kubeconfig, nil, 1, []string{"break   create.acme   BeforeClusterCreate   cannot-convert", `in use to v1beta1: cannot look up the version of kind "AcmeCluster" in group "infrastructure.acme.io": the CustomResourceDefinition "acmeclusters.infrastructure.acme.io" has neither label`, "1 break, 0 degrade"}, nil)
	labelled := anykind.Of("infrastructure.acme.io", "v7", "AcmeCluster")
	if err := apiextensionsv1.AddToScheme(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(labelled), labelled); err != nil {
		t.Fatal(err)
	}
	labelled.Labels = map[string]string{"cluster.x-k8s.io/v1beta2": "v7"}
	if err := c.Update(t.Context(), labelled); err != nil {
		t.Fatal(err)
	}
	says(t, kubeconfig, nil, 0, []string{"0 break, 0 degrade, 3 warn, 0 ok"}, nil)

	// Two versions of Cluster API at once leave the running version unknown.
	create(t, c, installedProvider("other", "CoreProvider", "cluster-api", "v1.13.0"))
	says(t, kubeconfig, nil, 0, nil, []string{"there are several Providers for Cluster API: capi-system/cluster-api, capi-system/other"})
}

// TestPreflightRights: the error names the missing permission.
func TestPreflightRights(t *testing.T) {
	_, c := connect(t)
	if err := rbacv1.AddToScheme(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"cluster.x-k8s.io/watch-filter": filterOf(t)}
	known(t, c, "rights", map[string]string{"create": "BeforeClusterCreate"}, labels)
	added, err := apiServer.AddUser(envtest.User{Name: "preflight"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := kubeconfigOf(t, added.Config())
	flags := []string{"--watch-filter", filterOf(t)}
	says(t, kubeconfig, flags, 1, nil, []string{
		"The release of Cluster API that runs now is not known: list providers.clusterctl.cluster.x-k8s.io: forbidden: grant the verb list on providers of the API group clusterctl.cluster.x-k8s.io, in all namespaces. ",
		"hookgate: preflight: list extensionconfigs.runtime.cluster.x-k8s.io: forbidden: grant the verb list on extensionconfigs of the API group runtime.cluster.x-k8s.io, in all namespaces\n",
	})
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "preflight"}}
	grant := func(group, resource string) {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{Verbs: []string{"list"}, APIGroups: []string{group},
			Resources: []string{resource}})
	}
	grant("runtime.cluster.x-k8s.io", "extensionconfigs")
	grant("runtime.hookgate.dev", "extensionconfigs")
	create(t, c, role)
	create(t, c, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "preflight"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "preflight"}},
	})
	eventually(t, "the policies are forbidden, too", func() (string, bool) {
		_, _, errOut := preflight(t, kubeconfig, flags...)
		return errOut, strings.Contains(errOut, "grant the verb list on extensionpolicies of the API group hookgate.dev, in all namespaces")
	})
	grant("hookgate.dev", "extensionpolicies")
	grant("hookgate.dev", "handlerchains")
	grant("hookgate.dev", "hookrules")
	grant("hookgate.dev", "hookjobs")
	if err := c.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	eventually(t, "these two are enough", func() (string, bool) {
		code, out, errOut := preflight(t, kubeconfig, flags...)
		return out + errOut, code == 0 && strings.Contains(out, "1 handler of 1 ExtensionConfig: ")
	})
	// Conversion of Clusters needs more permissions.
	create(t, c, policyFor("rights", "rights", "", "v1beta1", labels))
	says(t, kubeconfig, flags, 0, []string{"warn    create.rights   BeforeClusterCreate   references-unchecked",
		"grant the verb list on clusters of the API group cluster.x-k8s.io"}, nil)
	grant("cluster.x-k8s.io", "clusters")
	if err := c.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there are no Clusters", func() (string, bool) {
		code, out, errOut := preflight(t, kubeconfig, flags...)
		return out + errOut, code == 0 && strings.Contains(out, "1 warn, 0 ok") && !strings.Contains(out, "references-unchecked")
	})
}

func installedProvider(name, kind, of, version string) *unstructured.Unstructured {
	p := &unstructured.Unstructured{Object: map[string]any{"type": kind, "providerName": of, "version": version}}
	p.SetAPIVersion("clusterctl.cluster.x-k8s.io/v1alpha3")
	p.SetKind("Provider")
	p.SetNamespace("capi-system")
	p.SetName(name)
	return p
}
