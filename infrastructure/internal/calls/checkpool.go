// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"fmt"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

func checkPool(r *hooksv1alpha1.ReconcileMachinePoolResponse, prefix string, known map[string]bool) error {
	if err := checkPhase(r); err != nil {
		return err
	}
	switch n := len(r.GetInstances()); {
	case n > limits.Instances:
		return bad("instances: has %d entries, but at most %d are allowed", n, limits.Instances)
	case r.InstanceCount == nil:
		return refused(infrav1.IncompleteListReason,
			"instanceCount is missing: without it, a list that was cut looks like a complete one")
	case int(r.GetInstanceCount()) != n:
		return refused(infrav1.IncompleteListReason, "instanceCount is not the number of instances: the list was cut")
	}
	if err := checkProviderID("providerId", r.GetProviderId(), ""); err != nil {
		return err
	}
	names, ids := map[string]bool{}, map[string]bool{}
	for i, instance := range r.GetInstances() {
		if err := checkInstance(fmt.Sprintf("instances[%d]", i), instance, prefix, known); err != nil {
			return err
		}
		if names[instance.GetName()] {
			return bad("instances[%d].name: %q occurs twice", i, instance.GetName())
		}
		id := instance.GetProviderId()
		if id != "" && ids[id] {
			return refused(infrav1.DuplicateProviderIDReason, "instances[%d].providerId: %q occurs twice", i, id)
		}
		names[instance.GetName()], ids[id] = true, true
	}
	return nil
}

func checkInstance(at string, i *hooksv1alpha1.Instance, prefix string, known map[string]bool) *Error {
	if i.GetName() == "" || len(i.GetName()) > maxInstanceName {
		return bad("%s.name: must have 1 to %d characters", at, maxInstanceName)
	}
	if err := checkPhaseAndReason(i.GetPhase(), i.GetReason()); err != nil {
		err.Message = at + "." + err.Message
		return err
	}
	if i.GetProviderId() == "" && i.GetPhase() == hooksv1alpha1.Phase_PHASE_READY {
		return bad("%s.providerId is missing, but the phase is Ready", at)
	}
	if !known[i.GetProviderId()] {
		if err := checkProviderID(at+".providerId", i.GetProviderId(), prefix); err != nil {
			return err
		}
	}
	switch {
	case len(i.GetFailureDomain()) > maxName:
		return bad("%s.failureDomain: must have at most %d characters", at, maxName)
	case len(i.GetVersion()) > maxName:
		return bad("%s.version: must have at most %d characters", at, maxName)
	case len(i.GetRevision()) > maxRevision:
		return bad("%s.revision: must have at most %d characters", at, maxRevision)
	}
	return checkAddresses(at+".addresses", i.GetAddresses())
}
