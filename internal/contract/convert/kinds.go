// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

// apiVersions returns the apiVersion of the object of a v1beta2 reference.
type apiVersions func(group, kind string) (string, error)

// kind is a kind of object in requests of hooks, with its conversions in both directions. Each combines the conversion
// that Cluster API generates with the steps that it leaves to the webhooks of its main module, which is not a
// dependency.
type kind struct {
	name string // "MachineSet"
	path string // "machineSet", the beginning of paths of losses
	old  *side
	hub  *side
}

// side is a kind in one version, with its conversion to the other version. Values are pointers to the Go type.
type side struct {
	name string
	typ  reflect.Type
	// convert returns src in the other version. It does not change src, and may share memory with it. restored is the
	// object of the other version in the annotation that Cluster API's converters write, or nil.
	convert func(src, restored any, refs apiVersions) (any, error)
}

func newKind[Old, Hub any](
	name string,
	up func(src *Old, dst, restored *Hub) error,
	down func(src *Hub, dst *Old, refs apiVersions) error,
) *kind {
	upgrade := func(src, restored any, _ apiVersions) (any, error) {
		dst := new(Hub)
		from, _ := restored.(*Hub)
		return dst, up(src.(*Old), dst, from)
	}
	downgrade := func(src, _ any, refs apiVersions) (any, error) {
		dst := new(Old)
		return dst, down(src.(*Hub), dst, refs)
	}
	return &kind{
		name: name,
		path: strings.ToLower(name[:1]) + name[1:],
		old:  &side{name: V1Beta1, typ: reflect.TypeFor[Old](), convert: upgrade},
		hub:  &side{name: V1Beta2, typ: reflect.TypeFor[Hub](), convert: downgrade},
	}
}

// kinds returns all kinds.
func kinds() []*kind {
	return []*kind{
		newKind("Cluster", clusterUp, clusterDown),
		newKind("Machine", machineUp, machineDown),
		newKind("MachineSet", machineSetUp, machineSetDown),
		newKind("MachinePool", machinePoolUp, machinePoolDown),
	}
}

// sides returns the version of that name and the other version, or nil if there is no version of that name.
func (k *kind) sides(name string) (from, to *side) {
	switch name {
	case V1Beta1:
		return k.old, k.hub
	case V1Beta2:
		return k.hub, k.old
	}
	return nil, nil
}

func clusterUp(src *clusterv1beta1.Cluster, dst, restored *clusterv1.Cluster) (err error) {
	if err := clusterv1beta1.Convert_v1beta1_Cluster_To_v1beta2_Cluster(src, dst, nil); err != nil {
		return err
	}
	dst.Spec.InfrastructureRef, err = withoutVersion("spec.infrastructureRef", src.Spec.InfrastructureRef)
	if err != nil {
		return err
	}
	if dst.Spec.ControlPlaneRef, err = withoutVersion("spec.controlPlaneRef", src.Spec.ControlPlaneRef); err != nil {
		return err
	}
	// In v1beta1, false may also mean that the value was not set.
	if restored == nil {
		restored = &clusterv1.Cluster{}
	}
	was := &restored.Status.Initialization
	dst.Spec.Paused = stated(src.Spec.Paused, restored.Spec.Paused)
	dst.Status.Initialization.ControlPlaneInitialized = stated(src.Status.ControlPlaneReady,
		was.ControlPlaneInitialized)
	dst.Status.Initialization.InfrastructureProvisioned = stated(src.Status.InfrastructureReady,
		was.InfrastructureProvisioned)
	return nil
}

func clusterDown(src *clusterv1.Cluster, dst *clusterv1beta1.Cluster, refs apiVersions) (err error) {
	if err := clusterv1beta1.Convert_v1beta2_Cluster_To_v1beta1_Cluster(src, dst, nil); err != nil {
		return err
	}
	dst.Spec.InfrastructureRef, err = withVersion("spec.infrastructureRef", &src.Spec.InfrastructureRef,
		src.Namespace, refs)
	if err != nil {
		return err
	}
	dst.Spec.ControlPlaneRef, err = withVersion("spec.controlPlaneRef", &src.Spec.ControlPlaneRef, src.Namespace, refs)
	if err != nil {
		return err
	}
	if n := dst.Spec.ClusterNetwork; n != nil && n.APIServerPort != nil && *n.APIServerPort == 0 {
		n.APIServerPort = nil
	}
	topology := dst.Spec.Topology
	if topology == nil {
		return nil
	}
	inNamespace(topology.ControlPlane.MachineHealthCheck, src.Namespace)
	if topology.Workers == nil {
		return nil
	}
	for i := range topology.Workers.MachineDeployments {
		md := &topology.Workers.MachineDeployments[i]
		inNamespace(md.MachineHealthCheck, src.Namespace)
		md.FailureDomain = orAbsent(md.FailureDomain)
	}
	return nil
}

func machineUp(src *clusterv1beta1.Machine, dst, restored *clusterv1.Machine) error {
	if err := clusterv1beta1.Convert_v1beta1_Machine_To_v1beta2_Machine(src, dst, nil); err != nil {
		return err
	}
	if err := machineSpecUp("spec", &src.Spec, &dst.Spec); err != nil {
		return err
	}
	known := restored != nil
	if !known {
		restored = &clusterv1.Machine{}
	}
	was := &restored.Status.Initialization
	dst.Status.Initialization.BootstrapDataSecretCreated = stated(src.Status.BootstrapReady,
		was.BootstrapDataSecretCreated)
	dst.Status.Initialization.InfrastructureProvisioned = stated(src.Status.InfrastructureReady,
		was.InfrastructureProvisioned)
	if known {
		dst.Spec.MinReadySeconds = restored.Spec.MinReadySeconds
		dst.Status.Phase = restored.Status.Phase
		dst.Status.FailureDomain = restored.Status.FailureDomain
	}
	return nil
}

func machineDown(src *clusterv1.Machine, dst *clusterv1beta1.Machine, refs apiVersions) error {
	if err := clusterv1beta1.Convert_v1beta2_Machine_To_v1beta1_Machine(src, dst, nil); err != nil {
		return err
	}
	return machineSpecDown("spec", &src.Spec, &dst.Spec, src.Namespace, refs)
}

func machineSetUp(src *clusterv1beta1.MachineSet, dst, _ *clusterv1.MachineSet) error {
	if err := clusterv1beta1.Convert_v1beta1_MachineSet_To_v1beta2_MachineSet(src, dst, nil); err != nil {
		return err
	}
	if err := machineSpecUp("spec.template.spec", &src.Spec.Template.Spec, &dst.Spec.Template.Spec); err != nil {
		return err
	}
	dst.Spec.Template.Spec.MinReadySeconds = nil
	if seconds := src.Spec.MinReadySeconds; seconds != 0 {
		dst.Spec.Template.Spec.MinReadySeconds = &seconds
	}
	return nil
}

func machineSetDown(src *clusterv1.MachineSet, dst *clusterv1beta1.MachineSet, refs apiVersions) error {
	if err := clusterv1beta1.Convert_v1beta2_MachineSet_To_v1beta1_MachineSet(src, dst, nil); err != nil {
		return err
	}
	if seconds := src.Spec.Template.Spec.MinReadySeconds; seconds != nil {
		dst.Spec.MinReadySeconds = *seconds
	}
	return machineSpecDown("spec.template.spec", &src.Spec.Template.Spec, &dst.Spec.Template.Spec, src.Namespace, refs)
}

func machinePoolUp(src *clusterv1beta1.MachinePool, dst, restored *clusterv1.MachinePool) error {
	if err := clusterv1beta1.Convert_v1beta1_MachinePool_To_v1beta2_MachinePool(src, dst, nil); err != nil {
		return err
	}
	if err := machineSpecUp("spec.template.spec", &src.Spec.Template.Spec, &dst.Spec.Template.Spec); err != nil {
		return err
	}
	dst.Spec.Template.Spec.MinReadySeconds = src.Spec.MinReadySeconds
	if restored == nil {
		restored = &clusterv1.MachinePool{}
	}
	was := &restored.Status.Initialization
	dst.Status.Initialization.BootstrapDataSecretCreated = stated(src.Status.BootstrapReady,
		was.BootstrapDataSecretCreated)
	dst.Status.Initialization.InfrastructureProvisioned = stated(src.Status.InfrastructureReady,
		was.InfrastructureProvisioned)
	return nil
}

func machinePoolDown(src *clusterv1.MachinePool, dst *clusterv1beta1.MachinePool, refs apiVersions) error {
	if err := clusterv1beta1.Convert_v1beta2_MachinePool_To_v1beta1_MachinePool(src, dst, nil); err != nil {
		return err
	}
	dst.Spec.MinReadySeconds = src.Spec.Template.Spec.MinReadySeconds
	return machineSpecDown("spec.template.spec", &src.Spec.Template.Spec, &dst.Spec.Template.Spec, src.Namespace, refs)
}

func machineSpecUp(path string, src *clusterv1beta1.MachineSpec, dst *clusterv1.MachineSpec) (err error) {
	if dst.InfrastructureRef, err = withoutVersion(path+".infrastructureRef", &src.InfrastructureRef); err != nil {
		return err
	}
	dst.Bootstrap.ConfigRef, err = withoutVersion(path+".bootstrap.configRef", src.Bootstrap.ConfigRef)
	return err
}

func machineSpecDown(
	path string, src *clusterv1.MachineSpec, dst *clusterv1beta1.MachineSpec, namespace string, refs apiVersions,
) error {
	ref, err := withVersion(path+".infrastructureRef", &src.InfrastructureRef, namespace, refs)
	if err != nil {
		return err
	}
	if ref != nil {
		dst.InfrastructureRef = *ref
	}
	dst.Bootstrap.ConfigRef, err = withVersion(path+".bootstrap.configRef", &src.Bootstrap.ConfigRef, namespace, refs)
	if err != nil {
		return err
	}
	dst.Version = orAbsent(dst.Version)
	dst.ProviderID = orAbsent(dst.ProviderID)
	dst.FailureDomain = orAbsent(dst.FailureDomain)
	return nil
}

// stated returns a pointer to is if it is true, or if before is false; otherwise it returns nil.
func stated(is bool, before *bool) *bool {
	if is || before != nil && !*before {
		return &is
	}
	return nil
}

func orAbsent(s *string) *string {
	if s != nil && *s == "" {
		return nil
	}
	return s
}

// withoutVersion returns a reference of v1beta1 as one of v1beta2.
func withoutVersion(
	path string, ref *corev1.ObjectReference,
) (to clusterv1.ContractVersionedObjectReference, err error) {
	if ref == nil {
		return to, nil
	}
	group, version, found := strings.Cut(ref.APIVersion, "/")
	if !found {
		group = "" // a version of the core group
	}
	if strings.Contains(version, "/") {
		return to, hook.Errorf(hook.InvalidRequest, "%s.apiVersion is %q, which is not of the form group/version",
			path, text.Cut(ref.APIVersion, limits.QuotedBytes))
	}
	return clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: ref.Kind, Name: ref.Name}, nil
}

// withVersion returns a reference of v1beta2 as one of v1beta1, or nil if it is empty.
func withVersion(
	path string, ref *clusterv1.ContractVersionedObjectReference, namespace string, refs apiVersions,
) (*corev1.ObjectReference, error) {
	if !ref.IsDefined() {
		return nil, nil
	}
	apiVersion, err := refs(ref.APIGroup, ref.Kind)
	if err != nil {
		return nil, hook.Errorf(hook.KindOf(err), "%s: %s", path, err.Error()).WithCause(err)
	}
	return &corev1.ObjectReference{APIVersion: apiVersion, Kind: ref.Kind, Namespace: namespace, Name: ref.Name}, nil
}

// inNamespace sets the namespace of the template for remediation: in v1beta2, it is always the namespace of the
// Cluster.
func inNamespace(check *clusterv1beta1.MachineHealthCheckTopology, namespace string) {
	if check != nil && check.RemediationTemplate != nil {
		check.RemediationTemplate.Namespace = namespace
	}
}

// setNamespace sets the only part of the metadata that conversions read; the rest is not decoded.
func setNamespace(object any, namespace string) {
	object.(metav1.Object).SetNamespace(namespace)
}
