// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/test/process"
)

// newPolicy returns a policy of the test that makes failures of its target be ignored.
func newPolicy(t testing.TB, name, config, handler string) *v1alpha1.ExtensionPolicy {
	t.Helper()
	p := &v1alpha1.ExtensionPolicy{}
	p.Name = name
	p.Labels = map[string]string{clusterv1.WatchLabel: filterOf(t)}
	p.Spec.TargetRef = v1alpha1.TargetReference{Name: config, Handler: handler}
	p.Spec.FailurePolicy = v1alpha1.FailurePolicyIgnore
	return p
}

// awaitAccepted waits until the condition Accepted of a policy is that one, for its present generation.
func awaitAccepted(t testing.TB, c client.Client, name, reason, message string) {
	t.Helper()
	eventually(t, name+" is "+reason+": "+message, func() (string, bool) {
		p := &v1alpha1.ExtensionPolicy{}
		if err := c.Get(context.Background(), client.ObjectKey{Name: name}, p); err != nil {
			t.Fatal(err)
		}
		found := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.AcceptedCondition)
		if found == nil {
			return "no such condition", false
		}
		return found.Reason + ": " + found.Message, found.Reason == reason && found.Message == message &&
			found.ObservedGeneration == p.Generation &&
			(found.Status == metav1.ConditionTrue) == (reason == v1alpha1.AcceptedReason)
	})
}

// A cluster without the kind ExtensionPolicy has no policies, and replicas are ready without it; once installed, it is
// watched.
func TestPoliciesNeedNotBeInstalled(t *testing.T) {
	if apiServer == nil {
		t.Skipf("%s is not set", assetsVariable)
	}
	crds := filepath.Join("..", "..", "deploy", "crd")
	config, c := emptyServer(t, filepath.Join(crds, "runtime.cluster.x-k8s.io_extensionconfigs.yaml"))
	r := start(t, func(s *controllers.Config) { s.REST = config })
	r.client = c
	r.ready(t)
	x := newExtension(t, "a")
	create(t, c, newConfig(t, "no-policies", x))
	awaitCondition(t, c, "no-policies", discoveredCondition, metav1.ConditionTrue, "")
	if want := "install the CustomResourceDefinition of ExtensionPolicy in hookgate.dev, if you want policies"; strings.Count(r.log.String(), want) != 1 {
		t.Errorf("the log does not say once: %s", want)
	}
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{MaxTime: process.ServerPatience, Paths: []string{filepath.Join(crds, "hookgate.dev_extensionpolicies.yaml")}}); err != nil {
		t.Fatal(err)
	}
	create(t, c, newPolicy(t, "no-policies", "no-policies", ""))
	awaitAccepted(t, c, "no-policies", "Accepted", `In effect for ExtensionConfig "no-policies"`)
}

// emptyServer starts a separate API server with only the given CustomResourceDefinitions.
func emptyServer(t testing.TB, crds ...string) (*rest.Config, client.Client) {
	t.Helper()
	_, shared := connect(t)
	env := &envtest.Environment{BinaryAssetsDirectory: apiServer.BinaryAssetsDirectory,
		CRDInstallOptions: envtest.CRDInstallOptions{Paths: crds, ErrorIfPathMissing: true,
			MaxTime: process.ServerPatience},
		ControlPlaneStartTimeout: process.ServerPatience, ControlPlaneStopTimeout: process.ServerPatience}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	c, err := client.New(config, client.Options{Scheme: shared.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return config, c
}
