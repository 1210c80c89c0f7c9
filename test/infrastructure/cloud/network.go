// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	inmemoryruntime "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime"
	inmemoryserver "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server"

	"github.com/hookgate/hookgate/test/infrastructure/cloud/api"
)

// network is a load balancer, failure domains, and the cluster behind it.
type network struct {
	id, key  string
	spec     api.NetworkSpec
	state    string
	created  time.Time
	deleted  time.Time
	listener *inmemoryserver.WorkloadClusterListener
	// held keeps the port while no API server has it.
	held *reservation
	// initialized, ca and etcdCA are set by kubeadm init. etcdCA is nil if etcd is outside.
	initialized bool
	ca, etcdCA  *authority
	// servers has the IDs of the machines whose API server runs.
	servers map[string]bool
}

// endpoint returns where the API server is, as kubeadm writes it.
func (n *network) endpoint() string {
	return n.listener.HostPort()
}

// store returns a client of the cluster's objects, beside the API server.
func (c *Cloud) store(n *network) inmemoryruntime.Client {
	return c.manager.GetResourceGroup(n.id).GetClient()
}

// putNetwork makes the network of key, unless it is there.
func (c *Cloud) putNetwork(key string, spec api.NetworkSpec) (*network, bool, error) {
	if err := checkNetwork(&spec, c.config.Host); err != nil {
		return nil, false, err
	}
	if n := c.findNetwork(key); n != nil {
		if n.state == api.Deleting {
			return nil, false, fail(api.Conflict, "network %s is being deleted", key)
		}
		return n, false, nil
	}
	if len(c.networks) == maxNetworks {
		return nil, false, fail(api.QuotaExceeded, "there are %d networks already", maxNetworks)
	}
	n := &network{
		id: newID("net"), key: key, spec: spec, state: api.Provisioning, created: time.Now(), servers: map[string]bool{},
	}
	c.networks[n.id] = n
	c.record(api.Event{Verb: verbCreate, Kind: kindNetwork, ID: n.id, Key: n.key})
	return n, true, nil
}

// checkNetwork returns an error unless spec can be made, and fills in what it leaves out.
func checkNetwork(spec *api.NetworkSpec, host string) error {
	if len(spec.FailureDomains) == 0 {
		spec.FailureDomains = []string{"fd-1", "fd-2", "fd-3"}
	}
	if len(spec.FailureDomains) > maxDomains {
		return fail(api.InvalidParameters, "failureDomains has more than %d items", maxDomains)
	}
	for _, domain := range spec.FailureDomains {
		if !validName(domain) {
			return fail(api.InvalidParameters, "failureDomains: %q is not a name in lower case, as DNS has it", domain)
		}
	}
	if e := spec.Endpoint; e != nil {
		if e.Host != "" && e.Host != host {
			return fail(api.InvalidParameters, "endpoint.host: load balancers of this cloud are at %s", host)
		}
		if e.Port != 0 && (e.Port < minPort || e.Port > maxPort) {
			return fail(api.InvalidParameters, "endpoint.port: ports are from %d to %d", minPort, maxPort)
		}
	}
	return checkTags(spec.Tags)
}

// findNetwork returns the network with this ID or key, or nil.
func (c *Cloud) findNetwork(name string) *network {
	if n, ok := c.networks[name]; ok {
		return n
	}
	for _, n := range c.networks {
		if n.key == name {
			return n
		}
	}
	return nil
}

// stepNetwork carries on with n.
func (c *Cloud) stepNetwork(n *network, now time.Time) {
	switch n.state {
	case api.Provisioning:
		if now.Before(n.created.Add(c.faults.networkDelay)) {
			return
		}
		if err := c.openNetwork(n); err != nil {
			n.state = api.Failed
			c.record(api.Event{Verb: verbFail, Kind: kindNetwork, ID: n.id, Key: n.key, Message: err.Error()})
			return
		}
		n.state = api.Running
	case api.Deleting:
		if now.Before(n.deleted.Add(c.faults.deletionDelay)) {
			return
		}
		if err := c.dropNetwork(n); err != nil {
			c.log.Error("drop network", "id", n.id, "error", err)
		}
		delete(c.networks, n.id)
		c.record(api.Event{Verb: verbDelete, Kind: kindNetwork, ID: n.id, Key: n.key})
	}
}

// openNetwork gives n its port.
func (c *Cloud) openNetwork(n *network) error {
	var wanted int32
	if n.spec.Endpoint != nil {
		wanted = n.spec.Endpoint.Port
	}
	held, err := reserve(wanted)
	if err != nil {
		return err
	}
	listener, err := c.mux.InitWorkloadClusterListener(n.id, held.port)
	if err != nil {
		held.release()
		return err
	}
	c.manager.AddResourceGroup(n.id)
	if err := c.mux.RegisterResourceGroup(n.id, n.id); err != nil {
		held.release()
		return err
	}
	n.listener, n.held = listener, held
	return nil
}

// dropNetwork takes away the cluster of n.
func (c *Cloud) dropNetwork(n *network) error {
	n.held.release()
	c.manager.DeleteResourceGroup(n.id)
	return c.mux.DeleteWorkloadClusterListener(n.id)
}

// deleteNetwork begins to delete n, which must be empty.
func (c *Cloud) deleteNetwork(n *network) error {
	for _, m := range c.order {
		if m.network == n {
			return fail(api.Conflict, "network %s has machines", n.key)
		}
	}
	for _, g := range c.groups {
		if g.network == n {
			return fail(api.Conflict, "network %s has groups", n.key)
		}
	}
	if n.state != api.Deleting {
		n.state, n.deleted = api.Deleting, time.Now()
	}
	return nil
}

// describeNetwork returns n as the API has it.
func describeNetwork(n *network) api.Network {
	answer := api.Network{
		ID: n.id, Key: n.key, State: n.state, FailureDomains: slices.Clone(n.spec.FailureDomains),
		Tags: maps.Clone(n.spec.Tags), Initialized: n.initialized, APIServers: len(n.servers),
	}
	if n.listener != nil {
		answer.Endpoint = &api.Endpoint{Host: n.listener.Host(), Port: n.listener.Port()}
	}
	return answer
}

// reservation is a port that is listened on, so that no other process takes it before the API server does. Connections
// are closed at once.
type reservation struct {
	port     int32
	listener net.Listener
}

// reserve takes this port, or any if it is 0.
func reserve(wanted int32) (*reservation, error) {
	const attempts = 256
	for range attempts {
		port := wanted
		if port == 0 {
			port = minPort + rand.Int32N(maxPort-minPort+1)
		}
		listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port)) // as the API server will
		if err == nil {
			r := &reservation{port: port, listener: listener}
			go r.refuse()
			return r, nil
		}
		if wanted != 0 {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no port from %d to %d is free", minPort, maxPort)
}

// refuse closes connections until the port is released.
func (r *reservation) refuse() {
	for {
		connection, err := r.listener.Accept()
		if err != nil {
			return
		}
		connection.Close()
	}
}

// release gives up the port. It does nothing if r is nil.
func (r *reservation) release() {
	if r != nil {
		r.listener.Close()
	}
}
