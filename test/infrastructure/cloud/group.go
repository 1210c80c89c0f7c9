// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/hookgate/hookgate/test/infrastructure/cloud/api"
)

// maxNamePrefix leaves room in a host's name for what tells instances of a group apart.
const maxNamePrefix = 40

// group is a set of equal machines, as many as replicas says.
type group struct {
	id, key string
	spec    api.GroupSpec
	network *network
	// reason and message say what kept the last instance from being made.
	reason, message string
	deleting        bool
	placed          int // of the next instance's failure domain
}

// putGroup makes the group of key, or changes what it should be.
func (c *Cloud) putGroup(ctx context.Context, key string, spec api.GroupSpec) (*group, bool, error) {
	n, err := c.checkGroup(&spec)
	if err != nil {
		return nil, false, err
	}
	g := c.findGroup(key)
	created := g == nil
	switch {
	case created && (spec.Bootstrap == nil || len(spec.Bootstrap.Data) == 0):
		return nil, false, fail(api.InvalidParameters, "bootstrap.data: a new group needs it")
	case created && len(c.groups) == maxGroups:
		return nil, false, fail(api.QuotaExceeded, "there are %d groups already", maxGroups)
	case created:
		g = &group{id: newID("g"), key: key, network: n}
		c.groups[g.id] = g
		c.record(api.Event{Verb: verbCreate, Kind: kindGroup, ID: g.id, Key: g.key, Name: spec.Name})
	case g.deleting:
		return nil, false, fail(api.Conflict, "group %s is being deleted", key)
	case g.network != n || g.spec.Name != spec.Name:
		return nil, false, fail(api.Conflict, "group %s has another network or name", key)
	case spec.Bootstrap == nil:
		spec.Bootstrap = g.spec.Bootstrap
	}
	g.spec = spec
	for _, m := range c.instances(g) {
		if slices.Contains(spec.Remove, m.ProviderID) {
			c.deleteMachine(ctx, m)
		}
	}
	c.fill(g)
	return g, created, nil
}

// checkGroup returns the network of a group, or an error unless spec can be made.
func (c *Cloud) checkGroup(spec *api.GroupSpec) (*network, error) {
	n, err := c.readyNetwork(spec.Network)
	if err != nil {
		return nil, err
	}
	switch {
	case !validName(spec.Name) || len(spec.Name) > maxNamePrefix:
		return nil, fail(api.InvalidParameters, "name: %q is not a name in lower case, as DNS has it, of at most %d bytes",
			spec.Name, maxNamePrefix)
	case spec.Replicas < 0 || spec.Replicas > maxInstances:
		return nil, fail(api.InvalidParameters, "replicas is from 0 to %d", maxInstances)
	case len(spec.Remove) > maxInstances:
		return nil, fail(api.InvalidParameters, "remove has more than %d items", maxInstances)
	case !validVersion(spec.Version):
		return nil, fail(api.InvalidParameters, "version: %q is not a version such as v1.36.3", spec.Version)
	case spec.Revision == "" || len(spec.Revision) > maxText:
		return nil, fail(api.InvalidParameters, "revision has from 1 to %d bytes", maxText)
	}
	for _, domain := range spec.FailureDomains {
		if !slices.Contains(n.spec.FailureDomains, domain) {
			return nil, fail(api.InvalidParameters, "failureDomains: the network has no %q", domain)
		}
	}
	return n, checkTags(spec.Tags)
}

// findGroup returns the group with this ID or key, or nil.
func (c *Cloud) findGroup(name string) *group {
	if g, ok := c.groups[name]; ok {
		return g
	}
	for _, g := range c.groups {
		if g.key == name {
			return g
		}
	}
	return nil
}

// instances returns the machines of g.
func (c *Cloud) instances(g *group) []*machine {
	var instances []*machine
	for _, m := range c.order {
		if m.group == g {
			instances = append(instances, m)
		}
	}
	return instances
}

// fill makes the instances that are missing, up to the first that cannot be made.
func (c *Cloud) fill(g *group) {
	missing := g.spec.Replicas
	for _, m := range c.instances(g) {
		if m.State != api.Deleting {
			missing--
		}
	}
	g.reason, g.message = "", ""
	for ; missing > 0; missing-- {
		domains := g.spec.FailureDomains
		if len(domains) == 0 {
			domains = g.network.spec.FailureDomains
		}
		id := newID("")
		m := &machine{
			Machine: api.Machine{
				Name: g.spec.Name + id[:6], Group: g.key, Revision: g.spec.Revision, Version: g.spec.Version,
				FailureDomain: domains[g.placed%len(domains)], Tags: maps.Clone(g.spec.Tags),
			},
			network: g.network, group: g, bootstrap: g.spec.Bootstrap,
		}
		g.placed++
		if err := c.addMachine(m); err != nil {
			if failure, ok := errors.AsType[*api.Error](err); ok {
				g.reason, g.message = failure.Reason, failure.Message
			}
			return
		}
	}
}

// stepGroup carries on with g: it makes instances that are missing, or forgets a group whose last instance is gone.
func (c *Cloud) stepGroup(ctx context.Context, g *group, _ time.Time) {
	if !g.deleting {
		c.fill(g)
		return
	}
	instances := c.instances(g)
	for _, m := range instances {
		c.deleteMachine(ctx, m)
	}
	if len(instances) == 0 {
		delete(c.groups, g.id)
		c.record(api.Event{Verb: verbDelete, Kind: kindGroup, ID: g.id, Key: g.key, Name: g.spec.Name})
	}
}

// describeGroup returns g as the API has it.
func (c *Cloud) describeGroup(g *group) api.Group {
	instances := c.instances(g)
	answer := api.Group{
		ID: g.id, Key: g.key, Network: g.network.key, Name: g.spec.Name, Replicas: g.spec.Replicas,
		Revision: g.spec.Revision, Version: g.spec.Version, State: api.Running, Reason: g.reason, Message: g.message,
		Instances: []api.Machine{}, Tags: maps.Clone(g.spec.Tags),
	}
	running := 0
	for _, m := range instances {
		answer.Instances = append(answer.Instances, describeMachine(m))
		if m.State == api.Running {
			running++
		}
	}
	switch {
	case g.deleting:
		answer.State = api.Deleting
	case g.reason != "":
		answer.State = api.Failed
	case running != g.spec.Replicas || running != len(instances):
		answer.State = api.Provisioning
	}
	answer.Instances, answer.InstanceCount = c.faults.lie(answer.Instances)
	return answer
}
