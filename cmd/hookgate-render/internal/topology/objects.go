// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/exp/topology/scope"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// The objects that a Cluster has once, and the ends of the roles of the others.
const (
	RoleCluster               = "Cluster"
	RoleInfrastructureCluster = "InfrastructureCluster"
	RoleControlPlane          = "ControlPlane"

	PartBootstrap      = "/bootstrap"
	PartInfrastructure = "/infrastructure"
	PartHealthCheck    = "/healthCheck"
)

// MachineDeploymentRole and MachinePoolRole return the roles of those with a name in the topology.
func MachineDeploymentRole(name string) string { return "MachineDeployment/" + name }

// MachinePoolRole returns the role of a MachinePool.
func MachinePoolRole(name string) string { return "MachinePool/" + name }

// Object is an object of a Cluster.
type Object struct {
	*unstructured.Unstructured
	// Role says what the object is for, whatever its name is.
	Role string

	isNew     bool // it does not exist yet
	generated bool // its name ends in random characters
}

// IsTemplate reports whether machines are made from the object.
func (o *Object) IsTemplate() bool { return strings.HasSuffix(o.GetKind(), clusterv1.TemplateSuffix) }

// collector collects the objects of a state, in the order in which Cluster API reconciles them.
type collector struct {
	scheme  *runtime.Scheme
	objects []Object
	err     error
}

// collect returns the objects of a state. order has the names of the MachineDeployments and the MachinePools of the
// topology; others follow.
func collect(
	scheme *runtime.Scheme, s *scope.ClusterState, machineDeployments, machinePools []string,
) ([]Object, error) {
	c := &collector{scheme: scheme}
	c.typed(RoleCluster, s.Cluster)
	c.add(RoleInfrastructureCluster, s.InfrastructureCluster, false)
	if cp := s.ControlPlane; cp != nil {
		c.add(RoleControlPlane+PartInfrastructure, cp.InfrastructureMachineTemplate, true)
		c.add(RoleControlPlane, cp.Object, false)
		if cp.MachineHealthCheck != nil {
			c.typed(RoleControlPlane+PartHealthCheck, cp.MachineHealthCheck)
		}
	}
	for _, name := range machineDeployments {
		md, role := s.MachineDeployments[name], MachineDeploymentRole(name)
		if md == nil {
			continue
		}
		c.add(role+PartInfrastructure, md.InfrastructureMachineTemplate, true)
		c.add(role+PartBootstrap, md.BootstrapTemplate, true)
		c.typed(role, md.Object)
		if md.MachineHealthCheck != nil {
			c.typed(role+PartHealthCheck, md.MachineHealthCheck)
		}
	}
	for _, name := range machinePools {
		mp, role := s.MachinePools[name], MachinePoolRole(name)
		if mp == nil {
			continue
		}
		c.add(role+PartInfrastructure, mp.InfrastructureMachinePoolObject, true)
		c.add(role+PartBootstrap, mp.BootstrapObject, true)
		c.typed(role, mp.Object)
	}
	return c.objects, c.err
}

func (c *collector) add(role string, o *unstructured.Unstructured, generated bool) {
	if o != nil {
		c.objects = append(c.objects, Object{Unstructured: o.DeepCopy(), Role: role, generated: generated})
	}
}

// typed adds an object of one of Cluster API's types, without what the API server fills in.
func (c *collector) typed(role string, o client.Object) {
	gvk, err := apiutil.GVKForObject(o, c.scheme)
	if err != nil {
		c.err = err
		return
	}
	members, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		c.err = err
		return
	}
	u := &unstructured.Unstructured{Object: members}
	u.SetGroupVersionKind(gvk)
	delete(members, "status")
	for _, at := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
		if m, ok, _ := unstructured.NestedMap(members, at...); ok && m["creationTimestamp"] == nil {
			unstructured.RemoveNestedField(members, append(at, "creationTimestamp")...)
		}
	}
	u.SetManagedFields(nil)
	u.SetResourceVersion("")
	c.add(role, u, false)
}
