// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"net"
	"strconv"

	"google.golang.org/protobuf/proto"

	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/table"
)

// The texts of phases and states, as in the mandated JSON.
var (
	phases = map[infrastructurev1alpha1.Phase]string{
		infrastructurev1alpha1.Phase_PHASE_PROVISIONING: "Provisioning", infrastructurev1alpha1.Phase_PHASE_READY: "Ready",
		infrastructurev1alpha1.Phase_PHASE_FAILED: "Failed",
	}
	states = map[infrastructurev1alpha1.DeletionState]string{
		infrastructurev1alpha1.DeletionState_DELETION_STATE_DELETING: "Deleting",
		infrastructurev1alpha1.DeletionState_DELETION_STATE_GONE:     "Gone",
	}
)

// infrastructure adds what an answer says of infrastructure.
func infrastructure(t *table.Table, message proto.Message) {
	if m, ok := message.(interface {
		GetPhase() infrastructurev1alpha1.Phase
		GetReason() string
	}); ok {
		t.Row("PHASE", phases[m.GetPhase()])
		row(t, "REASON", m.GetReason())
	}
	if m, ok := message.(interface {
		GetState() infrastructurev1alpha1.DeletionState
	}); ok {
		t.Row("STATE", states[m.GetState()])
	}
	switch m := message.(type) {
	case *infrastructurev1alpha1.ReconcileClusterResponse:
		if e := m.GetControlPlaneEndpoint(); e != nil {
			t.Row("ENDPOINT", net.JoinHostPort(e.GetHost(), strconv.Itoa(int(e.GetPort()))))
		}
	case *infrastructurev1alpha1.ReconcileMachineResponse:
		row(t, "PROVIDER ID", m.GetProviderId())
		for _, a := range m.GetAddresses() {
			t.Row("ADDRESS", a.GetType()+" "+a.GetAddress())
		}
	case *infrastructurev1alpha1.ReconcileMachinePoolResponse:
		for _, i := range m.GetInstances() {
			t.Row("INSTANCE", i.GetName()+" "+i.GetProviderId()+" "+phases[i.GetPhase()])
		}
	case *infrastructurev1alpha1.DiscoverInfrastructureResponse:
		row(t, "PROVIDER IDS", m.GetProviderIdPrefix())
	}
}

// row adds a row unless its value is empty.
func row(t *table.Table, name, value string) {
	if value != "" {
		t.Row(name, value)
	}
}
