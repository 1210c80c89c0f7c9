// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package api has the JSON of the fake cloud's API, and a client of it for tests. It imports nothing but the standard
// library. What each request does is described in the documentation of package cloud.
package api

import "time"

// States of a network, a machine, a group.
const (
	// Provisioning means that what was asked for is under way: a machine boots, or waits to join its cluster.
	Provisioning = "provisioning"
	// Running means that the load balancer answers, that the machine's Node is there, or that the group has its size.
	Running = "running"
	// Failed means that waiting is of no use; Reason and Message say why.
	Failed = "failed"
	// Deleting means that the deletion was accepted. What is gone answers 404.
	Deleting = "deleting"
)

// Reasons of errors, and of a state.
const (
	InvalidParameters    = "InvalidParameters"
	NotFound             = "NotFound"
	Conflict             = "Conflict"
	TooLarge             = "TooLarge"
	CredentialsInvalid   = "CredentialsInvalid"
	QuotaExceeded        = "QuotaExceeded"
	InsufficientCapacity = "InsufficientCapacity"
	Unavailable          = "Unavailable"
	// BootstrapFailed is the reason of a machine whose bootstrap data cannot work.
	BootstrapFailed = "BootstrapFailed"
	// JoinFailed is the reason of a machine that its cluster did not let in, as with a bootstrap token that expired.
	JoinFailed = "JoinFailed"
)

// Endpoint is where the API server of a network's cluster answers.
type Endpoint struct {
	Host string `json:"host,omitempty"`
	Port int32  `json:"port,omitempty"`
}

// NetworkSpec is the body of PUT /networks/{key}.
type NetworkSpec struct {
	// Endpoint asks for this port; the host, if there is one, must be the cloud's.
	Endpoint *Endpoint `json:"endpoint,omitempty"`
	// FailureDomains defaults to fd-1, fd-2 and fd-3.
	FailureDomains []string          `json:"failureDomains,omitempty"`
	Tags           map[string]string `json:"tags,omitempty"`
}

// Network is where a cluster lives: a load balancer, failure domains and the cluster's API server.
type Network struct {
	ID             string            `json:"id"`
	Key            string            `json:"key"`
	State          string            `json:"state"`
	Endpoint       *Endpoint         `json:"endpoint,omitempty"` // absent while provisioning
	FailureDomains []string          `json:"failureDomains"`
	Tags           map[string]string `json:"tags,omitempty"`
	// Initialized reports whether a machine has run kubeadm init.
	Initialized bool `json:"initialized"`
	// APIServers counts the running control plane machines.
	APIServers int `json:"apiServers"`
}

// Bootstrap is what a machine boots with: the keys value and format of Cluster API's Secret.
type Bootstrap struct {
	Data   []byte `json:"data"` // base64 in JSON
	Format string `json:"format,omitempty"`
}

// MachineSpec is the body of PUT /machines/{key} and of POST /machines.
type MachineSpec struct {
	Network      string `json:"network"`
	Name         string `json:"name"` // the host's name
	ControlPlane bool   `json:"controlPlane,omitempty"`
	// Version of Kubernetes in the image, such as v1.36.3.
	Version       string            `json:"version"`
	FailureDomain string            `json:"failureDomain,omitempty"`
	Bootstrap     *Bootstrap        `json:"bootstrap,omitempty"` // required for a machine that is not there yet
	Tags          map[string]string `json:"tags,omitempty"`
	// ClientToken, in POST only: the same token again returns the machine that it made.
	ClientToken string `json:"clientToken,omitempty"`
}

// Address of a machine, with the types of Cluster API.
type Address struct {
	Type    string `json:"type"`
	Address string `json:"address"`
}

// Machine is an instance: one that was asked for by itself, or one of a group.
type Machine struct {
	ID            string            `json:"id"`
	Key           string            `json:"key,omitempty"`
	Name          string            `json:"name"`
	Network       string            `json:"network"`
	Group         string            `json:"group,omitempty"`
	Revision      string            `json:"revision,omitempty"`
	ControlPlane  bool              `json:"controlPlane,omitempty"`
	Version       string            `json:"version"`
	FailureDomain string            `json:"failureDomain"`
	ProviderID    string            `json:"providerID"`
	Addresses     []Address         `json:"addresses"`
	State         string            `json:"state"`
	Reason        string            `json:"reason,omitempty"`
	Message       string            `json:"message,omitempty"`
	Node          string            `json:"node,omitempty"` // once it joined
	Tags          map[string]string `json:"tags,omitempty"`
	Created       time.Time         `json:"created"`
}

// MachineList is the answer to GET /machines.
type MachineList struct {
	Items []Machine `json:"items"`
	Count int       `json:"count"`
}

// MachineChange is the body of PATCH /machines/{id}: what happens to a machine that runs.
type MachineChange struct {
	// Version replaces the kubelet's, as an upgrade in place does.
	Version string `json:"version,omitempty"`
	// Ready sets the Node's condition: True, False or Unknown.
	Ready string `json:"ready,omitempty"`
}

// GroupSpec is the body of PUT /groups/{key}.
type GroupSpec struct {
	Network string `json:"network"`
	// Name is the prefix of the hosts' names.
	Name     string `json:"name"`
	Replicas int    `json:"replicas"`
	// Remove names, by provider ID, the instances that go. No other instance is ever taken away.
	Remove []string `json:"remove,omitempty"`
	// Revision, Version, FailureDomains and Bootstrap are those of instances to come; they change no existing one.
	Revision       string            `json:"revision"`
	Version        string            `json:"version"`
	FailureDomains []string          `json:"failureDomains,omitempty"`
	Bootstrap      *Bootstrap        `json:"bootstrap,omitempty"` // required for a group that is not there yet
	Tags           map[string]string `json:"tags,omitempty"`
}

// Group is a set of equal machines.
type Group struct {
	ID       string `json:"id"`
	Key      string `json:"key"`
	Network  string `json:"network"`
	Name     string `json:"name"`
	Replicas int    `json:"replicas"`
	Revision string `json:"revision"`
	Version  string `json:"version"`
	State    string `json:"state"`
	// Reason and Message say what kept the last instance from being made.
	Reason        string            `json:"reason,omitempty"`
	Message       string            `json:"message,omitempty"`
	Instances     []Machine         `json:"instances"` // including those that are being deleted
	InstanceCount int               `json:"instanceCount"`
	Tags          map[string]string `json:"tags,omitempty"`
}

// Tally counts things of one kind since the cloud started.
type Tally struct {
	Exist   int `json:"exist"`
	Created int `json:"created"`
	Deleted int `json:"deleted"`
	// Vanished counts those that a test took away; they are not in Deleted.
	Vanished int `json:"vanished"`
	// Peak is the largest Exist there was.
	Peak int `json:"peak"`
}

// Counts is the answer to GET /counts.
type Counts struct {
	Networks Tally `json:"networks"`
	Machines Tally `json:"machines"` // instances of groups included
	Groups   Tally `json:"groups"`
	// Repeated has the keys and names for which a machine was made more than once, with how many were made.
	Repeated map[string]int `json:"repeated"`
	// Requests counts what was asked, by method and kind of path, such as "PUT /machines/{id}".
	Requests map[string]int `json:"requests"`
}

// Event is something that came or went.
type Event struct {
	Sequence int       `json:"sequence"`
	Time     time.Time `json:"time"`
	Verb     string    `json:"verb"` // create, delete, vanish, join, fail
	Kind     string    `json:"kind"` // network, machine, group
	ID       string    `json:"id"`
	Key      string    `json:"key,omitempty"`
	Name     string    `json:"name,omitempty"`
	Group    string    `json:"group,omitempty"`
	Message  string    `json:"message,omitempty"`
}

// EventList is the answer to GET /events.
type EventList struct {
	Items []Event `json:"items"`
}

// How lists of machines lie.
const (
	ListEmpty     = "empty"     // no items, and a count of 0
	ListShort     = "short"     // half the items, and a count that agrees
	ListCut       = "cut"       // half the items, and the true count
	ListDuplicate = "duplicate" // the first item twice, and a count that agrees
)

// What a Rule does.
const (
	ActionError   = "error"   // answers Status and Reason
	ActionGarbage = "garbage" // answers 200 and something that is not JSON
	ActionClose   = "close"   // cuts the connection
	ActionHang    = "hang"    // answers nothing, until the faults are changed or the caller leaves
)

// Rule breaks requests.
type Rule struct {
	Method string `json:"method,omitempty"` // any, if empty
	// Path is a pattern of package path, such as /machines/*. No rule applies to /faults, /counts and /events.
	Path   string `json:"path"`
	Action string `json:"action"`
	// After does what was asked before it breaks the answer.
	After bool `json:"after,omitempty"`
	// Times is how often it applies; 0 is until the faults are changed.
	Times  int    `json:"times,omitempty"`
	Status int    `json:"status,omitempty"` // of ActionError; 500 by default
	Reason string `json:"reason,omitempty"`
	// Hits, in answers, is how often it has applied.
	Hits int `json:"hits,omitempty"`
}

// Faults is the body of PUT /faults, which replaces the faults that were, and the answer to GET.
type Faults struct {
	// NetworkDelay, MachineDelay and DeletionDelay are durations such as "2s".
	NetworkDelay  string `json:"networkDelay,omitempty"`
	MachineDelay  string `json:"machineDelay,omitempty"`
	DeletionDelay string `json:"deletionDelay,omitempty"`
	// Quota is how many machines there may be; absent is no quota.
	Quota *int `json:"quota,omitempty"`
	// Full names failure domains without capacity.
	Full []string `json:"full,omitempty"`
	// List makes lists of machines, and of a group's instances, lie.
	List  string `json:"list,omitempty"`
	Rules []Rule `json:"rules,omitempty"`
}

// Error is the body of an answer other than 2xx.
type Error struct {
	Status  int    `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Error returns the reason and the message.
func (e *Error) Error() string {
	return e.Reason + ": " + e.Message
}
