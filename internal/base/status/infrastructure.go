// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import "time"

// Infrastructure is what the objects of the infrastructure provider say, sorted by namespace and name.
type Infrastructure struct {
	Now      time.Time              `json:"now"`
	Clusters []InfrastructureObject `json:"clusters"`
	Machines []InfrastructureObject `json:"machines"`
	Pools    []InfrastructureObject `json:"pools"`
}

// InfrastructureObject is a HookgateCluster, a HookgateMachine or a HookgateMachinePool.
type InfrastructureObject struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Cluster   string `json:"cluster,omitempty"` // the name of the Cluster
	Class     string `json:"class,omitempty"`   // the name of the InfrastructureClass
	// State is Ready, Paused, or the reason of the condition Ready. Unknown is what the controllers have not looked at.
	State string `json:"state"`
	// Since is when the state began: Ready or Paused, or being neither. It is absent if that is not known.
	Since *time.Time `json:"since,omitempty"`
	// Message says what it waits for.
	Message string `json:"message,omitempty"`
	// Failure is the last call to the extension, if that failed.
	Failure *FailedCall `json:"failure,omitempty"`
	// ProviderID is that of a machine, or of what holds the instances of a pool.
	ProviderID string `json:"providerID,omitempty"`
	// Wanted is the number of instances that a pool should have.
	Wanted *int `json:"wanted,omitempty"`
	// Instances is how many instances there are according to the extension's last answers, and Objects how many objects
	// stand for them: HookgateMachines, and provider IDs of a pool whose instances are no Machines.
	Instances int `json:"instances"`
	Objects   int `json:"objects"`
}

// FailedCall is a call about an object that failed.
type FailedCall struct {
	Hook    string    `json:"hook"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
}

// Differs reports whether the backend has another number of instances than the objects say.
func (o *InfrastructureObject) Differs() bool {
	return o.Instances != o.Objects || o.Wanted != nil && *o.Wanted != o.Instances
}

// Well reports whether nothing is wrong with the object, and nothing is waited for.
func (o *InfrastructureObject) Well() bool {
	return (o.State == string(Ready) || o.State == "Paused") && o.Failure == nil && !o.Differs()
}
