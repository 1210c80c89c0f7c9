// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg/desiredstate"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinedeployment/mdutil"

	"github.com/hookgate/hookgate/cmd/hookgate-render/internal/topology"
)

// askMachineSet asks whether the Machines of a MachineDeployment can be updated in place, as Cluster API does.
func (c *comparison) askMachineSet(
	ctx context.Context, role string, before, after *clusterv1.MachineDeployment,
) (bool, string, error) {
	handler, err := c.handler(ctx, runtimehooksv1.CanUpdateMachineSet)
	if handler == "" {
		return false, "", err
	}
	machineSet := func(md *clusterv1.MachineDeployment) clusterv1.MachineSet {
		ms := clusterv1.MachineSet{Spec: clusterv1.MachineSetSpec{
			ClusterName: md.Spec.ClusterName, Replicas: md.Spec.Replicas, Selector: md.Spec.Selector,
			Template: *md.Spec.Template.DeepCopy(),
		}}
		ms.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineSet"))
		ms.Name, ms.Namespace, ms.Labels, ms.Annotations = md.Name, md.Namespace, md.Labels, md.Annotations
		return ms
	}
	infrastructure, bootstrap := role+topology.PartInfrastructure, role+topology.PartBootstrap
	request := &runtimehooksv1.CanUpdateMachineSetRequest{
		Current: runtimehooksv1.CanUpdateMachineSetRequestObjects{
			MachineSet: machineSet(before), InfrastructureMachineTemplate: raw(c.was[infrastructure]),
			BootstrapConfigTemplate: raw(c.was[bootstrap]),
		},
		Desired: runtimehooksv1.CanUpdateMachineSetRequestObjects{
			MachineSet: machineSet(after), InfrastructureMachineTemplate: raw(c.now.Object(infrastructure)),
			BootstrapConfigTemplate: raw(c.now.Object(bootstrap)),
		},
	}
	response := &runtimehooksv1.CanUpdateMachineSetResponse{}
	if err := c.now.Extensions.CallExtension(
		ctx, runtimehooksv1.CanUpdateMachineSet, before, handler, request, response); err != nil {
		return false, "", err
	}
	return covered(handler, []patched{
		{"MachineSet", covering(&request.Current.MachineSet.Spec.Template),
			covering(&request.Desired.MachineSet.Spec.Template), response.MachineSetPatch},
		{"bootstrap template", request.Current.BootstrapConfigTemplate.Raw, request.Desired.BootstrapConfigTemplate.Raw,
			response.BootstrapConfigTemplatePatch},
		{"infrastructure template", request.Current.InfrastructureMachineTemplate.Raw,
			request.Desired.InfrastructureMachineTemplate.Raw, response.InfrastructureMachineTemplatePatch},
	}, "spec", "template", "spec")
}

// askMachine asks whether the Machines of a KubeadmControlPlane can be updated in place, as Cluster API does.
func (c *comparison) askMachine(
	ctx context.Context, before, after *controlplanev1.KubeadmControlPlane, current, desired *bootstrapv1.KubeadmConfig,
) (bool, string, error) {
	handler, err := c.handler(ctx, runtimehooksv1.CanUpdateMachine)
	if handler == "" {
		return false, "", err
	}
	role := topology.RoleControlPlane + topology.PartInfrastructure
	request := &runtimehooksv1.CanUpdateMachineRequest{}
	for _, side := range []struct {
		kcp      *controlplanev1.KubeadmControlPlane
		config   *bootstrapv1.KubeadmConfig
		template *unstructured.Unstructured
		into     *runtimehooksv1.CanUpdateMachineRequestObjects
	}{
		{before, current, c.was[role], &request.Current}, {after, desired, c.now.Object(role), &request.Desired},
	} {
		machine, err := desiredstate.ComputeDesiredMachine(side.kcp, c.now.Cluster, "", nil)
		if err != nil {
			return false, "", err
		}
		machine.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Machine"))
		machine.Name, machine.OwnerReferences = before.Name, nil
		config := side.config.DeepCopy()
		config.SetGroupVersionKind(bootstrapv1.GroupVersion.WithKind("KubeadmConfig"))
		config.OwnerReferences = nil
		side.into.Machine = *machine
		if side.into.BootstrapConfig.Raw, err = json.Marshal(config); err != nil {
			return false, "", err
		}
		side.into.InfrastructureMachine = raw(machineOf(side.template, machine))
	}
	response := &runtimehooksv1.CanUpdateMachineResponse{}
	if err := c.now.Extensions.CallExtension(
		ctx, runtimehooksv1.CanUpdateMachine, before, handler, request, response); err != nil {
		return false, "", err
	}
	return covered(handler, []patched{
		{"Machine", coveringMachine(&request.Current.Machine), coveringMachine(&request.Desired.Machine),
			response.MachinePatch},
		{"KubeadmConfig", request.Current.BootstrapConfig.Raw, request.Desired.BootstrapConfig.Raw,
			response.BootstrapConfigPatch},
		{"infrastructure machine", request.Current.InfrastructureMachine.Raw, request.Desired.InfrastructureMachine.Raw,
			response.InfrastructureMachinePatch},
	}, "spec")
}

// handler returns the one handler of a hook; empty if the server has none.
func (c *comparison) handler(ctx context.Context, h runtimecatalog.Hook) (string, error) {
	handlers, err := c.now.Extensions.GetAllExtensions(ctx, h, c.now.Cluster)
	switch {
	case err != nil || len(handlers) == 0:
		return "", err
	case len(handlers) > 1:
		return "", fmt.Errorf("%s: Cluster API allows only one handler, but the server has %s", runtimecatalog.HookName(h),
			strings.Join(handlers, ", "))
	}
	return handlers[0], nil
}

// patched is an object before and after a change, and what an extension says that it can change of it in place.
type patched struct {
	what         string
	was, desired []byte
	patch        runtimehooksv1.Patch
}

// covered reports whether the patches of a handler make of each object what is desired at a path.
func covered(handler string, all []patched, path ...string) (ok bool, reason string, err error) {
	for _, p := range all {
		now := p.was
		if p.patch.IsDefined() && len(now) > 0 {
			if now, err = apply(now, p.patch); err != nil {
				return false, "", fmt.Errorf("handler %q: the patch of the %s: %w", handler, p.what, err)
			}
		}
		same, err := equalAt(now, p.desired, path)
		if err != nil {
			return false, "", err
		}
		if !same {
			return false, fmt.Sprintf("%s cannot change the %s in place", handler, p.what), nil
		}
	}
	return true, handler + " can change them in place", nil
}

func apply(object []byte, p runtimehooksv1.Patch) ([]byte, error) {
	if p.PatchType == runtimehooksv1.JSONMergePatchType {
		return jsonpatch.MergePatch(object, p.Patch)
	}
	patch, err := jsonpatch.DecodePatch(p.Patch)
	if err != nil {
		return nil, err
	}
	return patch.Apply(object)
}

// equalAt reports whether two objects are equal at a path.
func equalAt(a, b []byte, path []string) (bool, error) {
	texts := [2][]byte{}
	for i, object := range [][]byte{a, b} {
		var members map[string]any
		if len(object) > 0 {
			if err := json.Unmarshal(object, &members); err != nil {
				return false, err
			}
		}
		value, _, err := unstructured.NestedFieldNoCopy(members, path...)
		if err != nil {
			return false, err
		}
		if texts[i], err = json.Marshal(value); err != nil {
			return false, err
		}
	}
	return bytes.Equal(texts[0], texts[1]), nil
}

// covering returns a MachineSet of which only what extensions have to cover is there.
func covering(t *clusterv1.MachineTemplateSpec) []byte {
	t = mdutil.MachineTemplateDeepCopyRolloutFields(t)
	t.Spec.Bootstrap, t.Spec.InfrastructureRef = clusterv1.Bootstrap{}, clusterv1.ContractVersionedObjectReference{}
	body, _ := json.Marshal(clusterv1.MachineSet{Spec: clusterv1.MachineSetSpec{Template: *t}})
	return body
}

// coveringMachine is covering for a Machine.
func coveringMachine(m *clusterv1.Machine) []byte {
	t := mdutil.MachineTemplateDeepCopyRolloutFields(&clusterv1.MachineTemplateSpec{Spec: m.Spec})
	t.Spec.Bootstrap, t.Spec.InfrastructureRef = clusterv1.Bootstrap{}, clusterv1.ContractVersionedObjectReference{}
	body, _ := json.Marshal(clusterv1.Machine{Spec: t.Spec})
	return body
}

// raw returns an object as requests have it; empty without one.
func raw(o *unstructured.Unstructured) runtime.RawExtension {
	if o == nil {
		return runtime.RawExtension{}
	}
	sent := &unstructured.Unstructured{Object: map[string]any{"spec": o.Object["spec"]}}
	sent.SetGroupVersionKind(o.GroupVersionKind())
	sent.SetName(o.GetName())
	sent.SetNamespace(o.GetNamespace())
	sent.SetLabels(o.GetLabels())
	sent.SetAnnotations(o.GetAnnotations())
	body, _ := json.Marshal(sent.Object) // it is made of JSON
	return runtime.RawExtension{Raw: body}
}

// machineOf returns the infrastructure machine that is made from a template for a Machine; nil without a template.
func machineOf(template *unstructured.Unstructured, m *clusterv1.Machine) *unstructured.Unstructured {
	if template == nil {
		return nil
	}
	spec, _, _ := unstructured.NestedFieldCopy(template.Object, "spec", "template", "spec")
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion(template.GetAPIVersion())
	o.SetKind(infrastructureKind(template))
	o.SetName(m.Name)
	o.SetNamespace(m.Namespace)
	o.SetLabels(m.Labels)
	o.SetAnnotations(m.Annotations)
	return o
}

// infrastructureKind returns the kind of the machines that are made from a template.
func infrastructureKind(template *unstructured.Unstructured) string {
	return strings.TrimSuffix(template.GetKind(), clusterv1.TemplateSuffix)
}
