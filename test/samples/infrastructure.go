// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"encoding/json"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// InfrastructureHooks returns the names of the hooks of infrastructure but DiscoverInfrastructure, in the order in
// which infrastructure meets them.
func InfrastructureHooks() []string {
	return []string{
		"ReconcileCluster", "ReconcileMachine", "ReconcileMachinePool",
		"DeleteMachinePool", "DeleteMachine", "DeleteCluster",
	}
}

// The types below are written by hand, so that the bodies do not depend on the codec and on the generated code that
// they test.

type envelope struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
}

type infrastructureRequest struct {
	envelope
	Settings             map[string]string `json:"settings,omitempty"`
	Subject              *subject          `json:"subject,omitempty"`
	ControlPlaneEndpoint *endpoint         `json:"controlPlaneEndpoint,omitempty"`
	Replicas             *int32            `json:"replicas,omitempty"`
	Remove               []string          `json:"remove,omitempty"`
	Revision             string            `json:"revision,omitempty"`
	ControlPlane         bool              `json:"controlPlane,omitempty"`
	Version              string            `json:"version,omitempty"`
	FailureDomain        string            `json:"failureDomain,omitempty"`
	FailureDomains       []string          `json:"failureDomains,omitempty"`
	Bootstrap            *bootstrap        `json:"bootstrap,omitempty"`
	ProviderID           string            `json:"providerId,omitempty"`
}

type subject struct {
	ExternalID        string            `json:"externalId,omitempty"`
	ClusterExternalID string            `json:"clusterExternalId,omitempty"`
	Namespace         string            `json:"namespace,omitempty"`
	Name              string            `json:"name,omitempty"`
	ClusterName       string            `json:"clusterName,omitempty"`
	Parameters        json.RawMessage   `json:"parameters,omitempty"`
	Credentials       map[string]string `json:"credentials,omitempty"`
	ClusterOutputs    json.RawMessage   `json:"clusterOutputs,omitempty"`
	Cluster           any               `json:"cluster,omitempty"`
	Machine           any               `json:"machine,omitempty"`
	MachinePool       any               `json:"machinePool,omitempty"`
}

type bootstrap struct {
	Data   []byte `json:"data,omitempty"`
	Format string `json:"format,omitempty"`
}

type endpoint struct {
	Host string `json:"host,omitempty"`
	Port int32  `json:"port,omitempty"`
}

type infrastructureResponse struct {
	envelope
	Status               string          `json:"status"`
	Message              string          `json:"message,omitempty"`
	RetryAfterSeconds    int32           `json:"retryAfterSeconds"`
	Phase                string          `json:"phase,omitempty"`
	State                string          `json:"state,omitempty"`
	Reason               string          `json:"reason,omitempty"`
	Conditions           []condition     `json:"conditions,omitempty"`
	ControlPlaneEndpoint *endpoint       `json:"controlPlaneEndpoint,omitempty"`
	FailureDomains       []failureDomain `json:"failureDomains,omitempty"`
	Outputs              json.RawMessage `json:"outputs,omitempty"`
	ProviderID           string          `json:"providerId,omitempty"`
	Addresses            []address       `json:"addresses,omitempty"`
	FailureDomain        string          `json:"failureDomain,omitempty"`
	Instances            []instance      `json:"instances,omitempty"`
	InstanceCount        *int32          `json:"instanceCount,omitempty"`
}

type condition struct {
	Type    string `json:"type,omitempty"`
	Status  string `json:"status,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

type failureDomain struct {
	Name         string            `json:"name,omitempty"`
	ControlPlane bool              `json:"controlPlane,omitempty"`
	Attributes   map[string]string `json:"attributes,omitempty"`
}

type address struct {
	Type    string `json:"type,omitempty"`
	Address string `json:"address,omitempty"`
}

type instance struct {
	Name          string    `json:"name,omitempty"`
	ProviderID    string    `json:"providerId,omitempty"`
	Addresses     []address `json:"addresses,omitempty"`
	FailureDomain string    `json:"failureDomain,omitempty"`
	Revision      string    `json:"revision,omitempty"`
	Version       string    `json:"version,omitempty"`
	Phase         string    `json:"phase,omitempty"`
	Reason        string    `json:"reason,omitempty"`
}

type infrastructureDiscovery struct {
	envelope
	Status                string          `json:"status"`
	Message               string          `json:"message,omitempty"`
	Handlers              []handler       `json:"handlers,omitempty"`
	ProviderIDPrefix      string          `json:"providerIdPrefix,omitempty"`
	ClusterParameters     json.RawMessage `json:"clusterParameters,omitempty"`
	MachineParameters     json.RawMessage `json:"machineParameters,omitempty"`
	MachinePoolParameters json.RawMessage `json:"machinePoolParameters,omitempty"`
	MachineCapacities     []capacity      `json:"machineCapacities,omitempty"`
}

type capacity struct {
	Parameters      json.RawMessage   `json:"parameters,omitempty"`
	Capacity        map[string]string `json:"capacity,omitempty"`
	Architecture    string            `json:"architecture,omitempty"`
	OperatingSystem string            `json:"operatingSystem,omitempty"`
}

type handler struct {
	Name           string `json:"name"`
	RequestHook    any    `json:"requestHook"`
	TimeoutSeconds int32  `json:"timeoutSeconds,omitempty"`
	FailurePolicy  string `json:"failurePolicy,omitempty"`
}

const (
	infrastructure = "infrastructure.hookgate.dev/v1alpha1"
	greeting       = "grüß dich, \"world\" <&>"
	clusterID      = "hg-c-0d6f7b1c2a394e58"
	providerID     = "acme://rack-7/vm-41"
)

// InfrastructureBody returns a full request of a hook of infrastructure, in the mandated JSON. It panics if there is no
// such hook.
func InfrastructureBody(hook string) []byte {
	r := infrastructureRequest{
		envelope: envelope{hook + "Request", infrastructure}, Settings: map[string]string{"tier": "gold", "greeting": greeting},
	}
	if hook != "DiscoverInfrastructure" {
		r.Subject = subjectOf(hook)
	}
	cloudConfig := &bootstrap{Data: []byte("#cloud-config\nwrite_files: []\n# grüß dich\n"), Format: "cloud-config"}
	switch hook {
	case "DiscoverInfrastructure", "DeleteCluster", "DeleteMachinePool":
	case "ReconcileCluster":
		r.ControlPlaneEndpoint = &endpoint{"api.example.com", 6443}
	case "ReconcileMachine":
		r.ControlPlane, r.Version, r.FailureDomain = true, "v1.33.4", "rack-7"
		r.Bootstrap, r.ProviderID = cloudConfig, providerID
	case "DeleteMachine":
		r.ProviderID = providerID
	case "ReconcileMachinePool":
		r.Replicas, r.Remove, r.Revision = new(int32(0)), []string{"acme://rack-7/vm-39", "acme://rack-7/vm-40"}, "6b86b273ff34"
		r.Version, r.FailureDomains, r.Bootstrap = "v1.33.4", []string{"rack-7", "rack-8"}, cloudConfig
	default:
		panic(fmt.Sprintf("samples: no hook %s of infrastructure", hook))
	}
	return Marshal(r)
}

func subjectOf(hook string) *subject {
	cluster := Cluster()
	s := &subject{
		ExternalID: clusterID, ClusterExternalID: clusterID, Namespace: cluster.Namespace, Name: cluster.Name, ClusterName: cluster.Name,
		Parameters:  json.RawMessage(`{"network":{"cidr":"10.0.0.0/8","mtu":1500},"quota":12345678901234567890,"tags":[null,"grün",1.50]}`),
		Credentials: map[string]string{"token": "s3cr3t", "url": "https://cloud.example.com"},
		Cluster:     cluster,
	}
	switch hook {
	case "ReconcileMachine", "DeleteMachine":
		s.ExternalID, s.Name, s.ClusterOutputs = "hg-m-41", "worker-x7k2p", outputs()
		machine := Machine()
		s.Machine = machine
	case "ReconcileMachinePool", "DeleteMachinePool":
		s.ExternalID, s.Name, s.ClusterOutputs = "hg-p-3", "workers", outputs()
		s.MachinePool = machinePool(cluster)
	}
	return s
}

func outputs() json.RawMessage {
	return json.RawMessage(`{"networkID":9007199254740993,"subnets":["net-1","net-2"]}`)
}

func machinePool(cluster clusterv1.Cluster) clusterv1.MachinePool {
	var p clusterv1.MachinePool
	p.APIVersion, p.Kind = clusterv1.GroupVersion.String(), "MachinePool"
	p.Namespace, p.Name, p.Labels = cluster.Namespace, "workers", map[string]string{clusterv1.ClusterNameLabel: cluster.Name}
	p.Spec.ClusterName, p.Spec.Replicas, p.Spec.FailureDomains = cluster.Name, new(int32(0)), []string{"rack-7", "rack-8"}
	p.Spec.Template.Spec = clusterv1.MachineSpec{
		ClusterName: cluster.Name, Version: "v1.33.4",
		Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfig", Name: "workers",
		}},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: "infrastructure.hookgate.dev", Kind: "HookgateMachinePool", Name: "workers",
		},
	}
	return p
}

// InfrastructureResponse returns a full answer of a hook of infrastructure, DiscoverInfrastructure too, in the mandated
// JSON. It panics if there is no such hook.
func InfrastructureResponse(hook string) []byte {
	if hook == "DiscoverInfrastructure" {
		return Marshal(infrastructureDiscovery{
			envelope: envelope{hook + "Response", infrastructure}, Status: "Success", Message: greeting,
			Handlers: []handler{
				{"delete-machine", map[string]string{"apiVersion": infrastructure, "hook": "DeleteMachine"}, 30, "Fail"},
				{Name: "reconcile-machine", RequestHook: map[string]string{"apiVersion": infrastructure, "hook": "ReconcileMachine"}},
			},
			ProviderIDPrefix:      "acme://",
			ClusterParameters:     json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","default":"grün"}}}`),
			MachineParameters:     json.RawMessage(`{"type":"object","required":["size"],"properties":{"size":{"type":"string","enum":["s","l"]}}}`),
			MachinePoolParameters: json.RawMessage(`{"type":"object","properties":{"disk":{"type":"integer","maximum":9007199254740993}}}`),
			MachineCapacities: []capacity{
				{json.RawMessage(`{"size":"s"}`), map[string]string{"cpu": "2", "memory": "4Gi"}, "arm64", "linux"},
				{Capacity: map[string]string{"cpu": "8"}},
			},
		})
	}
	r := infrastructureResponse{envelope: envelope{hook + "Response", infrastructure}, Status: "Success", Message: greeting}
	conditions := []condition{
		{"LoadBalancerReady", "True", "Created", ""}, {"NetworkReady", "Unknown", "QuotaExceeded", greeting},
	}
	addresses := []address{{"InternalIP", "10.0.0.41"}, {"Hostname", "worker-x7k2p"}}
	switch hook {
	case "ReconcileCluster":
		r.Phase, r.Conditions, r.ControlPlaneEndpoint = "Ready", conditions, &endpoint{"api.example.com", 6443}
		r.FailureDomains = []failureDomain{{"rack-7", true, map[string]string{"power": "A", "room": "grün"}}, {Name: "rack-8"}}
		r.Outputs = outputs()
	case "ReconcileMachine":
		r.Phase, r.Reason, r.RetryAfterSeconds, r.Conditions = "Failed", "InstanceGone", 600, conditions
		r.ProviderID, r.Addresses, r.FailureDomain = providerID, addresses, "rack-7"
	case "ReconcileMachinePool":
		r.Phase, r.RetryAfterSeconds, r.Conditions = "Provisioning", 10, conditions
		r.Instances = []instance{
			{"vm-41", providerID, addresses, "rack-7", "6b86b273ff34", "v1.33.4", "Ready", ""},
			{Name: "vm-42", Revision: "6b86b273ff34", Version: "v1.33.4", Phase: "Failed", Reason: "InsufficientCapacity"},
		}
		r.ProviderID, r.InstanceCount = "acme://rack-7/group-9", new(int32(2))
	case "DeleteMachine":
		r.State, r.RetryAfterSeconds = "Deleting", 15
	case "DeleteCluster", "DeleteMachinePool":
		r.State = "Gone"
	default:
		panic(fmt.Sprintf("samples: no hook %s of infrastructure", hook))
	}
	return Marshal(r)
}
