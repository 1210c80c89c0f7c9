// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/hookgate/hookgate/test/infrastructure/cloud/api"
)

// providerIDPrefix begins the provider ID of every machine.
const providerIDPrefix = "fake:///"

// machine is an instance, of a group or by itself.
type machine struct {
	api.Machine

	network   *network
	group     *group // nil unless it is an instance of one
	bootstrap *api.Bootstrap
	// request is the checksum of what POST asked for, with a client token.
	request [sha256.Size]byte
	// data is nil until the machine has booted; booted is when it did.
	data    *userData
	booted  time.Time
	deleted time.Time
	// serving reports whether the machine has an API server, hasEtcd whether it has a member of etcd.
	serving, hasEtcd bool
}

// putMachine makes the machine of key, unless it is there.
func (c *Cloud) putMachine(key string, spec api.MachineSpec) (*machine, bool, error) {
	if spec.ClientToken != "" {
		return nil, false, fail(api.InvalidParameters, "clientToken is for POST; PUT has its key")
	}
	if m := c.findMachine(key); m != nil {
		switch {
		case m.State == api.Deleting:
			return nil, false, fail(api.Conflict, "machine %s is being deleted", key)
		case m.network != c.findNetwork(spec.Network), m.Name != spec.Name, m.ControlPlane != spec.ControlPlane:
			return nil, false, fail(api.Conflict, "machine %s has another network, name or role", key)
		}
		return m, false, nil
	}
	m, err := c.createMachine(key, spec)
	return m, err == nil, err
}

// postMachine makes a machine, unless the client token has made one.
func (c *Cloud) postMachine(spec api.MachineSpec) (*machine, bool, error) {
	request := spec
	request.Bootstrap, request.Tags = nil, nil
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v", request))
	if spec.ClientToken != "" {
		if m := c.machines[c.tokens[spec.ClientToken]]; m != nil {
			if m.request != sum {
				return nil, false, fail(api.Conflict, "clientToken: it has made another machine")
			}
			return m, false, nil
		}
	}
	m, err := c.createMachine("", spec)
	if err != nil {
		return nil, false, err
	}
	if m.request = sum; spec.ClientToken != "" {
		c.tokens[spec.ClientToken] = m.ID
	}
	return m, true, nil
}

// createMachine makes a machine by itself.
func (c *Cloud) createMachine(key string, spec api.MachineSpec) (*machine, error) {
	n, err := c.readyNetwork(spec.Network)
	if err != nil {
		return nil, err
	}
	if len(spec.ClientToken) > maxText {
		return nil, fail(api.InvalidParameters, "clientToken has more than %d bytes", maxText)
	}
	if err := checkTags(spec.Tags); err != nil {
		return nil, err
	}
	m := &machine{
		Machine: api.Machine{
			Key: key, Name: spec.Name, ControlPlane: spec.ControlPlane, Version: spec.Version,
			FailureDomain: spec.FailureDomain, Tags: maps.Clone(spec.Tags),
		},
		network: n, bootstrap: spec.Bootstrap,
	}
	return m, c.addMachine(m)
}

// readyNetwork returns the network of this name if machines can be made in it.
func (c *Cloud) readyNetwork(name string) (*network, error) {
	n := c.findNetwork(name)
	switch {
	case n == nil:
		return nil, fail(api.InvalidParameters, "network: there is no %q", name)
	case n.state != api.Running:
		return nil, fail(api.Conflict, "network %s is %s", name, n.state)
	}
	return n, nil
}

// addMachine checks m, gives it what the cloud gives, and begins to boot it.
func (c *Cloud) addMachine(m *machine) error {
	domains := m.network.spec.FailureDomains
	switch {
	case !validName(m.Name):
		return fail(api.InvalidParameters, "name: %q is not a name in lower case, as DNS has it", m.Name)
	case !validVersion(m.Version):
		return fail(api.InvalidParameters, "version: %q is not a version such as v1.36.3", m.Version)
	case m.bootstrap == nil || len(m.bootstrap.Data) == 0:
		return fail(api.InvalidParameters, "bootstrap.data: a new machine needs it")
	case m.FailureDomain != "" && !slices.Contains(domains, m.FailureDomain):
		return fail(api.InvalidParameters, "failureDomain: the network has no %q", m.FailureDomain)
	case len(c.machines) >= maxMachines:
		return fail(api.QuotaExceeded, "there are %d machines already", maxMachines)
	case c.faults.Quota != nil && len(c.machines) >= *c.faults.Quota:
		return fail(api.QuotaExceeded, "the quota is %d machines", *c.faults.Quota)
	}
	c.serial++
	if m.FailureDomain == "" {
		m.FailureDomain = domains[c.serial%len(domains)]
	}
	if slices.Contains(c.faults.Full, m.FailureDomain) {
		return fail(api.InsufficientCapacity, "failure domain %s is full", m.FailureDomain)
	}
	m.ID = newID("i")
	m.Network, m.ProviderID = m.network.key, providerIDPrefix+m.ID
	m.State, m.Created = api.Provisioning, time.Now().UTC()
	m.Addresses = []api.Address{
		{Type: "InternalIP", Address: fmt.Sprintf("10.%d.%d.%d", c.serial>>16&255, c.serial>>8&255, c.serial&255)},
		{Type: "Hostname", Address: m.Name},
	}
	c.machines[m.ID] = m
	c.order = append(c.order, m)
	c.recordMachine(verbCreate, m)
	return nil
}

// findMachine returns the machine with this ID or key, or nil.
func (c *Cloud) findMachine(name string) *machine {
	if m, ok := c.machines[name]; ok {
		return m
	}
	for _, m := range c.order {
		if name != "" && m.Key == name {
			return m
		}
	}
	return nil
}

// stepMachine carries on with m.
func (c *Cloud) stepMachine(ctx context.Context, m *machine, now time.Time) {
	switch m.State {
	case api.Provisioning:
		if !now.Before(m.Created.Add(c.faults.machineDelay)) {
			c.boot(ctx, m, now)
		}
	case api.Deleting:
		if !now.Before(m.deleted.Add(c.faults.deletionDelay)) {
			c.forget(m)
			c.recordMachine(verbDelete, m)
		}
	}
}

// boot reads the bootstrap data and runs kubeadm. A machine that cannot join yet tries again at the next step.
func (c *Cloud) boot(ctx context.Context, m *machine, now time.Time) {
	if m.data == nil {
		metadata := map[string]string{
			"instance_id": m.ID, "local_hostname": m.Name, "hostname": m.Name, "provider_id": m.ProviderID,
		}
		data, err := parseUserData(m.bootstrap.Format, m.bootstrap.Data, metadata)
		if err != nil {
			c.failMachine(m, api.BootstrapFailed, err)
			return
		}
		m.data, m.booted, m.bootstrap = data, now, nil
	}
	reason, err := c.kubeadm(ctx, m)
	switch {
	case err == nil:
		m.State, m.Reason, m.Message, m.data = api.Running, "", "", nil
		c.recordMachine(verbJoin, m)
	case reason == api.JoinFailed && now.Before(m.booted.Add(c.config.JoinTimeout)):
		m.Message = err.Error()
	default:
		c.failMachine(m, reason, err)
	}
}

// failMachine gives up m, which still exists.
func (c *Cloud) failMachine(m *machine, reason string, err error) {
	m.State, m.Reason, m.Message, m.data, m.bootstrap = api.Failed, reason, shorten(err.Error()), nil, nil
	c.recordMachine(verbFail, m)
}

// deleteMachine begins to delete m: it stops at once.
func (c *Cloud) deleteMachine(ctx context.Context, m *machine) {
	if m.State == api.Deleting {
		return
	}
	m.State, m.Reason, m.Message, m.deleted = api.Deleting, "", "", time.Now()
	c.halt(ctx, m)
}

// vanish takes m away without a trace.
func (c *Cloud) vanish(ctx context.Context, m *machine) {
	c.halt(ctx, m)
	c.forget(m)
	c.recordMachine(verbVanish, m)
}

// forget removes the record of m.
func (c *Cloud) forget(m *machine) {
	delete(c.machines, m.ID)
	c.order = slices.DeleteFunc(c.order, func(other *machine) bool { return other == m })
	maps.DeleteFunc(c.tokens, func(_, id string) bool { return id == m.ID })
}

// changeMachine does what an update in place, or a fault of a host, does to the Node of m.
func (c *Cloud) changeMachine(ctx context.Context, m *machine, change api.MachineChange) error {
	switch {
	case change.Version != "" && !validVersion(change.Version):
		return fail(api.InvalidParameters, "version: %q is not a version such as v1.36.3", change.Version)
	case !slices.Contains([]string{"", "True", "False", "Unknown"}, change.Ready):
		return fail(api.InvalidParameters, "ready is True, False or Unknown")
	case m.State != api.Running:
		return fail(api.Conflict, "machine %s is %s", m.ID, m.State)
	}
	return c.changeNode(ctx, m, func(node *corev1.Node) {
		if change.Version != "" {
			m.Version = change.Version
			node.Status.NodeInfo.KubeletVersion = change.Version
		}
		if change.Ready != "" {
			setReady(node, corev1.ConditionStatus(change.Ready))
		}
	})
}

// listMachines returns the machines of a network, if one is named, that have all these tags, as name=value.
func (c *Cloud) listMachines(in string, tags []string) (api.MachineList, error) {
	list := api.MachineList{Items: []api.Machine{}}
	for _, tag := range tags {
		if !strings.Contains(tag, "=") {
			return list, fail(api.InvalidParameters, "tag: %q is not name=value", tag)
		}
	}
	for _, m := range c.order {
		if in != "" && m.network != c.findNetwork(in) {
			continue
		}
		if !slices.ContainsFunc(tags, func(tag string) bool {
			name, value, _ := strings.Cut(tag, "=")
			has, ok := m.Tags[name]
			return !ok || has != value
		}) {
			list.Items = append(list.Items, describeMachine(m))
		}
	}
	list.Items, list.Count = c.faults.lie(list.Items)
	return list, nil
}

// describeMachine returns m as the API has it.
func describeMachine(m *machine) api.Machine {
	answer := m.Machine
	answer.Tags, answer.Addresses = maps.Clone(m.Tags), slices.Clone(m.Addresses)
	return answer
}
