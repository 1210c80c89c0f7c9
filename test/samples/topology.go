// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

const (
	clusterAPIVersion = "cluster.x-k8s.io/v1beta2"
	namespace         = "team-payments"
	clusterName       = "payments-eu-west-1"
	version           = "v1.33.4"
)

// GeneratePatches returns a request with n items, n > 0: the templates of the infrastructure cluster and of the control
// plane, then those of as many MachineDeployments and MachinePools as n has room for. An item takes about 2.5 kB.
func GeneratePatches(n int) *runtimehooksv1.GeneratePatchesRequest {
	request := &runtimehooksv1.GeneratePatchesRequest{Variables: variables()}
	request.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("GeneratePatchesRequest"))
	cache := map[string][]byte{}
	for i := range n {
		request.Items = append(request.Items, item(i, cache))
	}
	return request
}

// item returns the i-th item of every request. Templates with the same text are compacted once: cache keeps them.
func item(i int, cache map[string][]byte) runtimehooksv1.GeneratePatchesRequestItem {
	uid := types.UID(fmt.Sprintf("%08x-6a5b-4c3d-8e2f-%012x", 0xa0000000+i, i))
	switch i {
	case 0:
		return fill(uid, holder("Cluster", clusterName, "spec.infrastructureRef"),
			template(cache, "awsclustertemplate.json", "infra", ""), nil)
	case 1:
		return fill(uid, holder("Cluster", clusterName, "spec.controlPlaneRef"),
			template(cache, "kubeadmcontrolplanetemplate.json", "cp", ""), controlPlaneVariables())
	case 2:
		return fill(uid, runtimehooksv1.HolderReference{
			APIVersion: "controlplane.cluster.x-k8s.io/v1beta2", Kind: "KubeadmControlPlane", Namespace: namespace,
			Name: clusterName + "-x7k2p", FieldPath: "spec.machineTemplate.spec.infrastructureRef",
		}, template(cache, "awsmachinetemplate.json", "cp-machines", "control-plane"), controlPlaneVariables())
	}
	// Two items for each set of machines: what boots them and what they run on. Every fourth set is a MachinePool, and
	// the second of all runs on containers, so that a request has every kind of template.
	set, infrastructure := (i-3)/2, (i-3)%2 == 1
	pool := set%4 == 2
	topologyName, holderKind := fmt.Sprintf("md-%d", set), "MachineDeployment"
	if pool {
		topologyName, holderKind = fmt.Sprintf("mp-%d", set), "MachinePool"
	}
	file, path := "kubeadmconfigtemplate.json", "spec.template.spec.bootstrap.configRef"
	if infrastructure {
		path = "spec.template.spec.infrastructureRef"
		switch {
		case pool:
			file = "awsmachinepooltemplate.json"
		case set == 1:
			file = "dockermachinetemplate.json"
		default:
			file = "awsmachinetemplate.json"
		}
	}
	return fill(uid, holder(holderKind, clusterName+"-"+topologyName, path),
		template(cache, file, topologyName, topologyName), workerVariables(topologyName, pool))
}

func fill(uid types.UID, holder runtimehooksv1.HolderReference, object []byte,
	variables []runtimehooksv1.Variable) runtimehooksv1.GeneratePatchesRequestItem {
	return runtimehooksv1.GeneratePatchesRequestItem{
		UID: uid, HolderReference: holder, Object: runtime.RawExtension{Raw: object}, Variables: variables,
	}
}

func holder(kind, name, path string) runtimehooksv1.HolderReference {
	return runtimehooksv1.HolderReference{APIVersion: clusterAPIVersion, Kind: kind, Namespace: namespace, Name: name,
		FieldPath: path}
}

func template(cache map[string][]byte, file, name, topologyName string) []byte {
	key := file + " " + name
	if cache[key] == nil {
		cache[key] = raw(file, "$NAME", name, "$TOPOLOGY", topologyName)
	}
	return cache[key]
}

func validateTopology() *runtimehooksv1.ValidateTopologyRequest {
	patches := GeneratePatches(9)
	request := &runtimehooksv1.ValidateTopologyRequest{Variables: patches.Variables}
	for _, i := range patches.Items {
		request.Items = append(request.Items, &runtimehooksv1.ValidateTopologyRequestItem{
			HolderReference: i.HolderReference, Object: i.Object, Variables: i.Variables,
		})
	}
	return request
}

// variables are those that hold for all templates: the Cluster's own, and the builtin one of the Cluster.
func variables() []runtimehooksv1.Variable {
	var list []runtimehooksv1.Variable
	if err := json.Unmarshal(raw("variables.json"), &list); err != nil {
		panic(fmt.Sprintf("samples: decode variables.json: %v", err))
	}
	return append(list, builtin(runtimehooksv1.Builtins{Cluster: &runtimehooksv1.ClusterBuiltins{
		Name:      clusterName,
		Namespace: namespace,
		UID:       "5f2b9a0e-7c1d-4e64-9f0b-2a6f0f7c3d11",
		Metadata: &runtimehooksv1.ObjectMeta{
			Labels:      map[string]string{"environment": "production", "cost-center": "4711"},
			Annotations: map[string]string{"example.com/owner": "Zoë Müller <zoe@example.com> & 支付团队 🚀"},
		},
		Topology: &runtimehooksv1.ClusterTopologyBuiltins{
			Version: version,
			ClassRef: runtimehooksv1.ClusterTopologyClusterClassRefBuiltins{Name: "production-v3",
				Namespace: "cluster-classes"},
			Class:          "production-v3",   //nolint:staticcheck // Cluster API still sends it
			ClassNamespace: "cluster-classes", //nolint:staticcheck // Cluster API still sends it
		},
		Network: &runtimehooksv1.ClusterNetworkBuiltins{
			ServiceDomain: new("cluster.local"),
			Services:      []string{"10.128.0.0/12", "fd00:100:64::/108"},
			Pods:          []string{"192.168.0.0/16", "fd00:100:96::/48"},
		},
	}}))
}

func controlPlaneVariables() []runtimehooksv1.Variable {
	return []runtimehooksv1.Variable{
		{Name: "instanceType", Value: apiextensionsv1.JSON{Raw: []byte(`"m6i.2xlarge"`)}},
		builtin(runtimehooksv1.Builtins{ControlPlane: &runtimehooksv1.ControlPlaneBuiltins{
			Version:  version,
			Name:     clusterName + "-x7k2p",
			Metadata: &runtimehooksv1.ObjectMeta{Labels: map[string]string{"tier": "control-plane"}},
			Replicas: ptr.To[int32](3),
			MachineTemplate: &runtimehooksv1.ControlPlaneMachineTemplateBuiltins{
				InfrastructureRef: runtimehooksv1.ControlPlaneMachineTemplateInfrastructureRefBuiltins{Name: clusterName + "-cp-machines"},
			},
		}}),
	}
}

func workerVariables(topologyName string, pool bool) []runtimehooksv1.Variable {
	list := []runtimehooksv1.Variable{
		{Name: "rootVolume", Value: apiextensionsv1.JSON{Raw: []byte(`{"size":250,"type":"gp3","iops":6000,"encrypted":true}`)}},
	}
	name := clusterName + "-" + topologyName
	metadata := &runtimehooksv1.ObjectMeta{Labels: map[string]string{"node-role.example.com/general": "true"}}
	bootstrap := &runtimehooksv1.MachineBootstrapBuiltins{ConfigRef: &runtimehooksv1.MachineBootstrapConfigRefBuiltins{Name: name}}
	infrastructure := &runtimehooksv1.MachineInfrastructureRefBuiltins{Name: name}
	if pool {
		return append(list, builtin(runtimehooksv1.Builtins{MachinePool: &runtimehooksv1.MachinePoolBuiltins{
			Version: version, Metadata: metadata, Class: "spot-pool", Name: name, TopologyName: topologyName,
			Replicas: ptr.To[int64](12), Bootstrap: bootstrap, InfrastructureRef: infrastructure,
		}}))
	}
	return append(list, builtin(runtimehooksv1.Builtins{MachineDeployment: &runtimehooksv1.MachineDeploymentBuiltins{
		Version: version, Metadata: metadata, Class: "default-worker", Name: name, TopologyName: topologyName,
		Replicas: ptr.To[int64](5), Bootstrap: bootstrap, InfrastructureRef: infrastructure,
	}}))
}

func builtin(value runtimehooksv1.Builtins) runtimehooksv1.Variable {
	return runtimehooksv1.Variable{Name: runtimehooksv1.BuiltinsName, Value: apiextensionsv1.JSON{Raw: Marshal(value)}}
}
