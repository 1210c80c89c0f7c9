// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// kinds are those of a ClusterClass: of an infrastructure provider, a control plane and a bootstrap provider.
type kinds struct{ infrastructure, cluster, machine, controlPlane, controlPlaneKind, bootstrap, bootstrapKind string }

// write writes a ClusterClass with the kinds, as providers publish them: two patches of an extension, for the Cluster and
// its workers, and a health check.
func (k kinds) write(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "class.yaml")
	write(t, file, strings.NewReplacer("INFRASTRUCTURE", k.infrastructure, "CLUSTER", k.cluster, "MACHINE", k.machine,
		"CONTROLPLANE", k.controlPlane, "CPKIND", k.controlPlaneKind, "BOOTSTRAP", k.bootstrap, "BSKIND", k.bootstrapKind,
	).Replace(read(t, "testdata/providers.yaml")))
	return file
}

const (
	infrastructure, bootstrap, controlPlane = "infrastructure.cluster.x-k8s.io/", "bootstrap.cluster.x-k8s.io/", "controlplane.cluster.x-k8s.io/"

	refV1Beta1 = "spec.machineTemplate.infrastructureRef"
	refV1Beta2 = "spec.machineTemplate.spec.infrastructureRef"
)

var (
	ofDocker = kinds{infrastructure + "v1beta2", "DockerCluster", "DockerMachine", controlPlane + "v1beta2", "KubeadmControlPlane", bootstrap + "v1beta2", "KubeadmConfig"}
	ofAWS    = kinds{infrastructure + "v1beta2", "AWSCluster", "AWSMachine", controlPlane + "v1beta2", "KubeadmControlPlane", bootstrap + "v1beta2", "KubeadmConfig"}
	nutanix  = kinds{infrastructure + "v1beta1", "NutanixCluster", "NutanixMachine", controlPlane + "v1beta2", "KubeadmControlPlane", bootstrap + "v1beta2", "KubeadmConfig"}
	rke2     = kinds{infrastructure + "v1beta1", "Metal3Cluster", "Metal3Machine", controlPlane + "v1beta2", "RKE2ControlPlane", bootstrap + "v1beta2", "RKE2Config"}
	k3s      = kinds{infrastructure + "v1alpha2", "ProxmoxCluster", "ProxmoxMachine", controlPlane + "v1beta2", "KThreesControlPlane", bootstrap + "v1beta2", "KThreesConfig"}
	acme     = kinds{infrastructure + "v1", "AcmeCluster", "AcmeMachine", controlPlane + "v1alpha7", "AcmeControlPlane", bootstrap + "v1beta2", "KubeadmConfig"}
)

// Kinds of providers that clusterctl knows need no CustomResourceDefinition. The contract that their release follows
// decides where the reference of the control plane is.
func TestProvidersAreKnown(t *testing.T) {
	x := startExtension(t, "v1")
	for name, tc := range map[string]struct {
		kinds
		ref string
	}{
		"Docker": {ofDocker, refV1Beta2}, "AWS": {ofAWS, refV1Beta2}, "Nutanix": {nutanix, refV1Beta2},
		"RKE2OnMetal3": {rke2, refV1Beta2}, "K3sOnProxmox": {k3s, refV1Beta1},
	} {
		t.Run(name, func(t *testing.T) {
			all := objects(t, "-f", tc.write(t), "--server", x.URL, "--ca", x.caFile)
			for _, want := range []struct{ object, path, value string }{
				{tc.cluster + " c-xxxxx", "spec.region", `"north"`},
				{tc.machine + "Template c-md-xxxxx", "spec.template.spec.size", `"large"`},
				{tc.controlPlaneKind + " c-xxxxx", tc.ref + ".kind", `"` + tc.machine + `Template"`},
				{tc.bootstrapKind + "Template c-md-xxxxx", "apiVersion", `"` + tc.bootstrap + `"`},
				{"MachineDeployment c-md-xxxxx", "spec.template.spec.infrastructureRef.kind", `"` + tc.machine + `Template"`},
			} {
				if got := at(all[want.object], want.path); got != want.value {
					t.Errorf("%s: %s is %s, want %s", want.object, want.path, got, want.value)
				}
			}
			if got, want := at(all["KubeadmConfigTemplate c-md-xxxxx"], "spec.template.spec.preKubeadmCommands"), `["first","v1"]`; got != want && tc.bootstrapKind == "KubeadmConfig" {
				t.Errorf("the workers have the commands %s, want the patch %s", got, want)
			}
		})
	}
}

// All kinds of other providers are named at once, with the CustomResourceDefinition that is enough of each.
func TestOtherProvidersAreAskedFor(t *testing.T) {
	x := startExtension(t, "v1")
	flags := []string{"-f", acme.write(t), "--server", x.URL, "--ca", x.caFile}
	got := render(t, flags...)
	for _, want := range []string{
		`hookgate: ClusterClass "acme": which contract of Cluster API do these kinds follow: ` +
			"acmecontrolplanes.controlplane.cluster.x-k8s.io, acmeclustertemplates.infrastructure.cluster.x-k8s.io, " +
			"acmecontrolplanetemplates.controlplane.cluster.x-k8s.io, acmemachinetemplates.infrastructure.cluster.x-k8s.io?\n",
		"\n  metadata: {name: acmecontrolplanes.controlplane.cluster.x-k8s.io, labels: {cluster.x-k8s.io/v1beta1: v1alpha7}}\n",
	} {
		if got.code != cmdline.ExitFailed || !strings.Contains(got.errOut, want) {
			t.Errorf("exit status %d, want %q in:\n%s", got.code, want, got.errOut)
		}
	}

	_, example, _ := strings.Cut(got.errOut, "v1alpha1_v1beta1:\n")
	var definitions strings.Builder
	for _, name := range []string{
		"acmecontrolplanes.controlplane", "acmecontrolplanetemplates.controlplane", "acmeclustertemplates.infrastructure", "acmemachinetemplates.infrastructure",
	} {
		definitions.WriteString("---\n" + strings.Replace(example, "acmecontrolplanes.controlplane", name, 1))
	}
	file := filepath.Join(t.TempDir(), "definitions.yaml")
	write(t, file, definitions.String())
	all := objects(t, append(flags, "-f", file)...)
	if got := at(all["AcmeControlPlane c-xxxxx"], refV1Beta1+".kind"); got != `"AcmeMachineTemplate"` {
		t.Errorf("with what the error says, the control plane refers to %s", got)
	}

	write(t, file, strings.ReplaceAll(definitions.String(), "v1alpha7", "v1alpha6"))
	if got := render(t, append(flags, "-f", file)...); !strings.Contains(got.errOut, "do these kinds follow: acmecontrolplanes.controlplane.cluster.x-k8s.io?\n") {
		t.Errorf("for another version of the control plane: %s%s", got.out, got.errOut)
	}
}
