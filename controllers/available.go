// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/internal/calls/circuit"
)

// The condition of an ExtensionConfig that says whether its extension is called.
const (
	availableCondition = "Available"
	circuitClosed      = "CircuitClosed"
	circuitOpen        = "CircuitOpen"
	circuitHalfOpen    = "CircuitHalfOpen"
	handlerCircuitOpen = "HandlerCircuitOpen"
	notDiscovered      = "NotDiscovered"
)

const (
	// settleTime is how long a circuit must have been open or closed before the condition says so. An extension that
	// comes and goes every other second is not written about each time.
	settleTime = 10 * time.Second
	// idleTime is how long ago the last failure of an open circuit must be for its extension to count as one that is not
	// called. Under load, probes fail more often than that.
	idleTime = 2 * time.Minute
)

// availability decides the condition Available from the circuit of the leader. Other replicas have circuits of their
// own, which the metrics show: a condition of several writers would change with each of them.
type availability struct {
	status  circuit.Status
	handler string // that the circuit belongs to; empty for the circuit of the extension
	settled bool   // the circuit has been in its state long enough to write about it
	idle    bool   // the circuit is open, and no call has failed for some time
}

// observeAvailability adds the circuit of an extension to the observation of a leader.
func (r *reconciler) observeAvailability(o *observation) {
	if r.circuits == nil || r.readOnly || !o.leads || o.paused || o.ca != nil {
		return
	}
	s, handler := r.circuits.Circuit(o.config.Name)
	a := &availability{status: s, handler: handler, settled: true}
	if age := o.now.Sub(s.Since); !s.Since.IsZero() && age < settleTime {
		a.settled, o.settles = false, settleTime-age
	}
	a.idle = s.State != circuit.Closed && o.now.Sub(s.Failed) >= idleTime
	o.available = a
}

// setAvailable sets the condition Available, unless the circuit has just changed.
func (o *observation) setAvailable(want *runtimev1.ExtensionConfig) {
	a := o.available
	if !a.settled {
		return
	}
	set := func(s metav1.ConditionStatus, reason, message string) {
		o.setCondition(want, availableCondition, s, reason, message)
	}
	// The texts have no times and no counts. The time of the condition's last transition says since when.
	switch open := a.status.State != circuit.Closed; {
	case open && a.handler != "":
		set(metav1.ConditionFalse, handlerCircuitOpen, fmt.Sprintf("Calls to the handler %q fail with %s. The gateway "+
			"refuses these calls, except for one call at a time, which probes whether the handler works again. Calls to other "+
			"handlers are sent", a.handler, a.status.Kind))
	case open && (o.problem != "" || !a.idle):
		set(metav1.ConditionFalse, circuitOpen, fmt.Sprintf("Calls to the extension fail with %s. The gateway refuses "+
			"these calls, except for one call at a time, which probes whether the extension works again", a.status.Kind))
	case open:
		set(metav1.ConditionUnknown, circuitHalfOpen, fmt.Sprintf("Calls to the extension failed with %s. The extension "+
			"answers Discovery, and the next call probes whether the extension works again", a.status.Kind))
	case o.found != nil:
		set(metav1.ConditionTrue, circuitClosed, "")
	case o.problem != "":
		set(metav1.ConditionUnknown, notDiscovered, "The extension does not answer Discovery. Calls to it are still sent")
	}
}
