// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"cmp"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/infrastructure/internal/calls"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// The functions here decide what an answer means for an object. They change the object that they are given, do no I/O,
// and know no time.

const deletingMessage = "the extension deletes the infrastructure"

// retryAfter returns when the extension wants to be called again.
func retryAfter(a proto.Message) time.Duration { return calls.RetryAfter(a) }

// decideMachine records an answer about a machine, and returns the usual time to the next call. It returns zero if the
// answer contradicts what is recorded: then only Synced has changed.
func decideMachine(m *infrav1.HookgateMachine, a *infrahooksv1alpha1.ReconcileMachineResponse) time.Duration {
	id := a.GetProviderId()
	if m.Spec.ProviderID != "" && id != "" && id != m.Spec.ProviderID {
		setUnsynced(m, infrav1.ProviderIDConflictReason, fmt.Sprintf("the extension returned the provider ID "+
			"%q, but %q is recorded and never changes: the extension must find the machine by its "+
			"externalID", id, m.Spec.ProviderID))
		return 0
	}
	m.Spec.ProviderID = cmp.Or(m.Spec.ProviderID, id)
	setSeen(m, a)
	setSynced(m)
	if len(a.GetAddresses()) > 0 {
		m.Status.Addresses = addressesOf(a.GetAddresses())
	}
	m.Status.FailureDomain = cmp.Or(a.GetFailureDomain(), m.Status.FailureDomain)
	if a.GetPhase() != infrahooksv1alpha1.Phase_PHASE_READY {
		return provisioningOr(provisioned(m.Status.Initialization), a.GetPhase())
	}
	m.Status.Initialization.Provisioned = new(true)
	return readyInterval
}

// provisioningOr returns the usual time to the next call about something that is not ready. What fails after it was
// provisioned, such as a machine that is gone, needs no haste.
func provisioningOr(provisioned bool, phase infrahooksv1alpha1.Phase) time.Duration {
	if provisioned && phase == infrahooksv1alpha1.Phase_PHASE_FAILED {
		return poolInterval
	}
	return provisioningInterval
}

// decideCluster records an answer about a cluster, and returns the usual time to the next call. settled is the endpoint
// of the Cluster, if the object has none.
func decideCluster(
	c *infrav1.HookgateCluster, settled clusterv1.APIEndpoint, a *infrahooksv1alpha1.ReconcileClusterResponse,
) time.Duration {
	setSeen(c, a)
	setSynced(c)
	decideEndpoint(c, settled, a.GetControlPlaneEndpoint())
	ready := a.GetPhase() == infrahooksv1alpha1.Phase_PHASE_READY
	if domains := a.GetFailureDomains(); ready || len(domains) > 0 {
		c.Status.FailureDomains = failureDomainsOf(domains)
	}
	if raw := a.GetOutputs().GetRaw(); ready || len(raw) > 0 {
		c.Status.Outputs = nil
		if len(raw) > 0 {
			c.Status.Outputs = &apiextensionsv1.JSON{Raw: raw}
		}
	}
	if !ready {
		return provisioningOr(provisioned(c.Status.Initialization), a.GetPhase())
	}
	c.Status.Initialization.Provisioned = new(true)
	return readyInterval
}

// decideEndpoint takes the first endpoint. Another one later is a conflict.
func decideEndpoint(c *infrav1.HookgateCluster, settled clusterv1.APIEndpoint, e *infrahooksv1alpha1.Endpoint) {
	if e == nil {
		return
	}
	answered := clusterv1.APIEndpoint{Host: e.GetHost(), Port: e.GetPort()}
	if used := endpointOf(c, settled); used != (clusterv1.APIEndpoint{}) && used != answered {
		setUnsynced(c, infrav1.EndpointConflictReason, fmt.Sprintf("the extension returned the endpoint %s:%d, "+
			"but %s:%d is in use and never changes: the extension must return the endpoint of the request",
			e.GetHost(), e.GetPort(), used.Host, used.Port))
		return
	}
	c.Spec.ControlPlaneEndpoint = answered
}

// endpointOf returns the endpoint that is settled for a cluster, if there is one.
func endpointOf(c *infrav1.HookgateCluster, settled clusterv1.APIEndpoint) clusterv1.APIEndpoint {
	if c.Spec.ControlPlaneEndpoint.Host != "" {
		return c.Spec.ControlPlaneEndpoint
	}
	if settled.Host != "" && settled.Port != 0 {
		return settled
	}
	return clusterv1.APIEndpoint{}
}

// decideDeleting records that something is left.
func decideDeleting(o object, message string) {
	set(o, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.DeletingReason, cmp.Or(message, deletingMessage))
	setSynced(o)
}

func addressesOf(list []*infrahooksv1alpha1.MachineAddress) clusterv1.MachineAddresses {
	addresses := make(clusterv1.MachineAddresses, len(list))
	for i, a := range list {
		addresses[i] = clusterv1.MachineAddress{Type: clusterv1.MachineAddressType(a.GetType()), Address: a.GetAddress()}
	}
	return addresses
}

func failureDomainsOf(list []*infrahooksv1alpha1.FailureDomain) []infrav1.FailureDomain {
	var domains []infrav1.FailureDomain
	for _, d := range list {
		domain := infrav1.FailureDomain{Name: d.GetName(), Attributes: d.GetAttributes()}
		if d.GetControlPlane() {
			domain.ControlPlane = new(true)
		}
		domains = append(domains, domain)
	}
	return domains
}
