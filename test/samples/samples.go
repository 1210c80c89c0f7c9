// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package samples holds a full request of every hook, as Cluster API v1.14 sends it: whole objects instead of three
// members, integers above 2^53, and content that is unusual but valid. Suites and benchmarks share it.
//
// It builds requests only; sending them and judging the answers is for its users. Everything is built from embedded
// files and is the same each time. Each call returns values of its own, so all functions are safe for concurrent use.
package samples

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// Hooks returns the names of all hooks but Discovery, in the order in which a Cluster meets them.
func Hooks() []string {
	return []string{
		"DiscoverVariables", "GeneratePatches", "ValidateTopology",
		"BeforeClusterCreate", "AfterControlPlaneInitialized", "GenerateUpgradePlan",
		"BeforeClusterUpgrade", "BeforeControlPlaneUpgrade", "AfterControlPlaneUpgrade",
		"BeforeWorkersUpgrade", "AfterWorkersUpgrade", "AfterClusterUpgrade",
		"CanUpdateMachine", "CanUpdateMachineSet", "UpdateMachine",
		"BeforeClusterDelete",
	}
}

// Lifecycle reports whether the hook is one of the nine whose answers can be merged.
func Lifecycle(hook string) bool {
	switch hook {
	case "BeforeClusterCreate", "AfterControlPlaneInitialized", "BeforeClusterUpgrade", "BeforeControlPlaneUpgrade",
		"AfterControlPlaneUpgrade", "BeforeWorkersUpgrade", "AfterWorkersUpgrade", "AfterClusterUpgrade",
		"BeforeClusterDelete":
		return true
	}
	return false
}

// Request returns the request of the hook, apiVersion and kind included. It panics if there is no such hook.
func Request(hook string) runtimehooksv1.RequestObject {
	var request runtimehooksv1.RequestObject
	switch hook {
	case "DiscoverVariables":
		request = &runtimehooksv1.DiscoverVariablesRequest{}
	case "GeneratePatches":
		request = GeneratePatches(8)
	case "ValidateTopology":
		request = validateTopology()
	case "GenerateUpgradePlan":
		request = &runtimehooksv1.GenerateUpgradePlanRequest{
			Cluster:                           Cluster(),
			FromControlPlaneKubernetesVersion: "v1.30.9",
			FromWorkersKubernetesVersion:      "v1.30.9",
			ToKubernetesVersion:               "v1.33.4",
		}
	case "CanUpdateMachine":
		request = canUpdateMachine()
	case "CanUpdateMachineSet":
		request = canUpdateMachineSet()
	case "UpdateMachine":
		request = updateMachine()
	default:
		request = lifecycle(hook)
	}
	request.SetSettings(map[string]string{"tier": "gold", "greeting": "grüß dich, \"world\" <&>"})
	request.GetObjectKind().SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind(hook + "Request"))
	return request
}

// Body returns the body of the hook's request, as Cluster API's client writes it.
func Body(hook string) []byte { return Marshal(Request(hook)) }

// Marshal returns value as Cluster API writes it: encoding/json, with HTML escaped and raw objects compacted.
func Marshal(value any) []byte {
	body, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("samples: marshal %T: %v", value, err))
	}
	return body
}

func lifecycle(hook string) runtimehooksv1.RequestObject {
	const from, to = "v1.32.7", "v1.33.4"
	controlPlane := []runtimehooksv1.UpgradeStepInfo{{Version: "v1.32.7"}, {Version: "v1.33.4"}}
	workers := []runtimehooksv1.UpgradeStepInfo{{Version: "v1.33.4"}}
	switch hook {
	case "BeforeClusterCreate":
		return &runtimehooksv1.BeforeClusterCreateRequest{Cluster: Cluster()}
	case "AfterControlPlaneInitialized":
		return &runtimehooksv1.AfterControlPlaneInitializedRequest{Cluster: Cluster()}
	case "BeforeClusterUpgrade":
		return &runtimehooksv1.BeforeClusterUpgradeRequest{Cluster: Cluster(), FromKubernetesVersion: from,
			ToKubernetesVersion:  to,
			ControlPlaneUpgrades: controlPlane, WorkersUpgrades: workers}
	case "BeforeControlPlaneUpgrade":
		return &runtimehooksv1.BeforeControlPlaneUpgradeRequest{Cluster: Cluster(), FromKubernetesVersion: from,
			ToKubernetesVersion:  to,
			ControlPlaneUpgrades: controlPlane, WorkersUpgrades: workers}
	case "AfterControlPlaneUpgrade":
		return &runtimehooksv1.AfterControlPlaneUpgradeRequest{Cluster: Cluster(), KubernetesVersion: to,
			ControlPlaneUpgrades: controlPlane[1:], WorkersUpgrades: workers}
	case "BeforeWorkersUpgrade":
		return &runtimehooksv1.BeforeWorkersUpgradeRequest{Cluster: Cluster(), FromKubernetesVersion: from,
			ToKubernetesVersion: to,
			WorkersUpgrades:     workers}
	case "AfterWorkersUpgrade":
		return &runtimehooksv1.AfterWorkersUpgradeRequest{Cluster: Cluster(), KubernetesVersion: to}
	case "AfterClusterUpgrade":
		return &runtimehooksv1.AfterClusterUpgradeRequest{Cluster: Cluster(), KubernetesVersion: to}
	case "BeforeClusterDelete":
		cluster := Cluster()
		deleted := cluster.CreationTimestamp
		cluster.DeletionTimestamp = &deleted
		return &runtimehooksv1.BeforeClusterDeleteRequest{Cluster: cluster}
	}
	panic(fmt.Sprintf("samples: no hook %q", hook))
}

func canUpdateMachine() *runtimehooksv1.CanUpdateMachineRequest {
	request := &runtimehooksv1.CanUpdateMachineRequest{
		Current: runtimehooksv1.CanUpdateMachineRequestObjects{
			Machine:               Machine(),
			InfrastructureMachine: object("awsmachine.json"),
			BootstrapConfig:       object("kubeadmconfig.json"),
		},
		Desired: runtimehooksv1.CanUpdateMachineRequestObjects{
			Machine: Machine(),
			InfrastructureMachine: object("awsmachine.json", `"instanceType": "m6i.xlarge"`,
				`"instanceType": "m6i.2xlarge"`),
			BootstrapConfig: object("kubeadmconfig.json", `"name": "v", "value": "2"`,
				`"name": "v", "value": "4"`),
		},
	}
	request.Current.Machine.Spec.Version = "v1.32.7"
	return request
}

func canUpdateMachineSet() *runtimehooksv1.CanUpdateMachineSetRequest {
	names := []string{"$NAME", "md-0-tt2c9", "$TOPOLOGY", "md-0"}
	request := &runtimehooksv1.CanUpdateMachineSetRequest{
		Current: runtimehooksv1.CanUpdateMachineSetRequestObjects{
			MachineSet:                    MachineSet(),
			InfrastructureMachineTemplate: object("awsmachinetemplate.json", names...),
			BootstrapConfigTemplate:       object("kubeadmconfigtemplate.json", names...),
		},
		Desired: runtimehooksv1.CanUpdateMachineSetRequestObjects{
			MachineSet: MachineSet(),
			InfrastructureMachineTemplate: object("awsmachinetemplate.json",
				append(names, "m6i.large", "m6i.xlarge")...),
			BootstrapConfigTemplate: object("kubeadmconfigtemplate.json", names...),
		},
	}
	request.Current.MachineSet.Spec.Template.Spec.Version = "v1.32.7"
	return request
}

func updateMachine() *runtimehooksv1.UpdateMachineRequest {
	return &runtimehooksv1.UpdateMachineRequest{Desired: runtimehooksv1.UpdateMachineRequestObjects{
		Machine:               Machine(),
		InfrastructureMachine: object("awsmachine.json"),
		BootstrapConfig:       object("kubeadmconfig.json"),
	}}
}

// Cluster returns the Cluster of the samples, without status: Cluster API removes that before it calls a hook.
func Cluster() clusterv1.Cluster {
	var cluster clusterv1.Cluster
	decode("cluster.yaml", &cluster)
	return cluster
}

// ClusterWithStatus is Cluster with a status, which callers other than Cluster API may leave in.
func ClusterWithStatus() clusterv1.Cluster {
	cluster := Cluster()
	decode("cluster-status.yaml", &cluster.Status)
	return cluster
}

// Machine returns a control plane Machine, as the in-place hooks carry it.
func Machine() clusterv1.Machine {
	var machine clusterv1.Machine
	decode("machine.yaml", &machine)
	return machine
}

// MachineSet returns a MachineSet, as CanUpdateMachineSet carries it.
func MachineSet() clusterv1.MachineSet {
	var machineSet clusterv1.MachineSet
	decode("machineset.yaml", &machineSet)
	return machineSet
}

// object returns the object of a file as a raw object; replacements are pairs of old and new text.
func object(file string, replacements ...string) runtime.RawExtension {
	return runtime.RawExtension{Raw: raw(file, replacements...)}
}
