// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"encoding/json"

	"github.com/hookgate/hookgate/hook"
)

const machines = hook.MachinesGroup + "/" + hook.MachinesVersion

type machineHookRequest struct {
	envelope
	Settings              map[string]string `json:"settings,omitempty"`
	Machine               any               `json:"machine,omitempty"`
	Cluster               any               `json:"cluster,omitempty"`
	NamespaceLabels       map[string]string `json:"namespaceLabels,omitempty"`
	InfrastructureMachine json.RawMessage   `json:"infrastructureMachine,omitempty"`
	ClusterMachines       int32             `json:"clusterMachines,omitempty"`
	NamespaceMachines     int32             `json:"namespaceMachines,omitempty"`
	RemediationID         string            `json:"remediationId,omitempty"`
	Attempt               int32             `json:"attempt,omitempty"`
}

type requestHook struct {
	APIVersion string `json:"apiVersion"`
	Hook       string `json:"hook"`
}

type discoverMachineHooksResponse struct {
	envelope
	Status   string    `json:"status"`
	Message  string    `json:"message,omitempty"`
	Handlers []handler `json:"handlers,omitempty"`
}

type machineHookResponse struct {
	envelope
	Status            string `json:"status"`
	Message           string `json:"message,omitempty"`
	RetryAfterSeconds int32  `json:"retryAfterSeconds"`
}

type afterMachineHookResponse struct {
	envelope
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

// MachineHookBody returns the mandated JSON of a request of a hook of Machines.
func MachineHookBody(hookName string) []byte {
	r := machineHookRequest{
		envelope: envelope{hookName + "Request", machines}, Settings: map[string]string{"tier": "gold", "greeting": greeting},
	}
	if hookName != "DiscoverMachineHooks" {
		r.Machine, r.Cluster = Machine(), Cluster()
	}
	switch hookName {
	case "BeforeMachineCreate":
		r.InfrastructureMachine = json.RawMessage(`{"apiVersion":"infrastructure.hookgate.dev/v1alpha1",` +
			`"kind":"HookgateMachine","metadata":{"name":"worker-x7k2p","namespace":"team-payments"},` +
			`"spec":{"parameters":{"size":"small","quota":12345678901234567890}}}`)
		r.ClusterMachines, r.NamespaceMachines = 3, 19
	case "AfterClusterDelete":
		r.Machine, r.NamespaceLabels = nil, map[string]string{"tenant": "payments"}
	case "BeforeMachineRemediation":
		r.RemediationID = "8a0c5f1e"
	case "RemediateMachine":
		r.RemediationID, r.Attempt = "8a0c5f1e", 2
	}
	return Marshal(r)
}

// MachineHookResponse returns the mandated JSON of an answer of a hook of Machines.
func MachineHookResponse(hookName string) []byte {
	e := envelope{hookName + "Response", machines}
	switch hookName {
	case "DiscoverMachineHooks":
		return Marshal(discoverMachineHooksResponse{
			envelope: e, Status: "Success", Message: greeting,
			Handlers: []handler{{Name: "detach-volumes", RequestHook: requestHook{machines, "BeforeMachineTerminate"}}},
		})
	case "AfterMachineProvisioned", "AfterClusterDelete":
		return Marshal(afterMachineHookResponse{e, "Success", greeting})
	}
	return Marshal(machineHookResponse{e, "Success", greeting, 30})
}
