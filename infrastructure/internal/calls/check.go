// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// The limits of answers, as the schemas of the kinds have them.
const (
	maxAttributes   = 64
	maxMembers      = 256 // of outputs
	maxProviderID   = 512
	maxPrefix       = 256
	maxName         = 256 // of a failure domain, an address, a version
	maxInstanceName = 253
	maxRevision     = 63
	maxHost         = 512
	maxReason       = 256
)

var (
	// reason is what a metav1.Condition allows.
	reason        = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
	conditionType = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`)
	prefix        = regexp.MustCompile(`^[a-z][-a-z0-9+.]*://`)
	statuses      = []string{"True", "False", "Unknown"}
	reserved      = []string{
		infrav1.ReadyCondition, infrav1.SyncedCondition, infrav1.ParametersValidCondition,
		infrav1.CredentialsMovableCondition, infrav1.PausedCondition,
	}
	addressTypes = []clusterv1.MachineAddressType{
		clusterv1.MachineHostName, clusterv1.MachineExternalIP, clusterv1.MachineInternalIP,
		clusterv1.MachineExternalDNS, clusterv1.MachineInternalDNS,
	}
)

// phased is what the answers about existing infrastructure have.
type phased interface {
	GetPhase() hooksv1alpha1.Phase
	GetReason() string
	GetConditions() []*hooksv1alpha1.Condition
}

// checkPhase checks what all answers about existing infrastructure have.
func checkPhase(r phased) *Error {
	if err := checkPhaseAndReason(r.GetPhase(), r.GetReason()); err != nil {
		return err
	}
	conditions := r.GetConditions()
	if len(conditions) > limits.InstanceConditions {
		return bad("conditions: has %d entries, but at most %d are allowed", len(conditions), limits.InstanceConditions)
	}
	seen := map[string]bool{}
	for i, c := range conditions {
		switch {
		case len(c.GetType()) > 316 || !conditionType.MatchString(c.GetType()):
			return bad("conditions[%d].type: must be a word in CamelCase", i)
		case slices.Contains(reserved, c.GetType()):
			return bad("conditions[%d].type: %s belongs to the controllers; choose another name", i, c.GetType())
		case seen[c.GetType()]:
			return bad("conditions[%d].type: %s occurs twice", i, c.GetType())
		case !slices.Contains(statuses, c.GetStatus()):
			return bad("conditions[%d].status: must be True, False or Unknown", i)
		case !isReason(c.GetReason()):
			return bad("conditions[%d].reason: must be a word in CamelCase", i)
		}
		seen[c.GetType()] = true
	}
	return nil
}

func checkPhaseAndReason(phase hooksv1alpha1.Phase, why string) *Error {
	switch phase {
	case hooksv1alpha1.Phase_PHASE_READY, hooksv1alpha1.Phase_PHASE_PROVISIONING:
		if why != "" && !isReason(why) {
			return bad("reason: must be a word in CamelCase")
		}
	case hooksv1alpha1.Phase_PHASE_FAILED:
		if !isReason(why) {
			return bad("reason: must be a word in CamelCase, because phase is Failed")
		}
	default:
		return bad("phase is missing: nothing is known about the infrastructure")
	}
	return nil
}

func isReason(s string) bool { return len(s) <= maxReason && reason.MatchString(s) }

func checkCluster(r *hooksv1alpha1.ReconcileClusterResponse) error {
	if err := checkPhase(r); err != nil {
		return err
	}
	if e := r.GetControlPlaneEndpoint(); e != nil {
		if e.GetHost() == "" || len(e.GetHost()) > maxHost || strings.ContainsFunc(e.GetHost(), notInID) {
			return bad("controlPlaneEndpoint.host: must have 1 to %d characters, and no spaces", maxHost)
		}
		if e.GetPort() < 1 || e.GetPort() > 65535 {
			return bad("controlPlaneEndpoint.port: must be from 1 to 65535, is %d", e.GetPort())
		}
	}
	domains := r.GetFailureDomains()
	if len(domains) > limits.FailureDomains {
		return bad("failureDomains: has %d entries, but at most %d are allowed", len(domains), limits.FailureDomains)
	}
	seen := map[string]bool{}
	for i, d := range domains {
		switch {
		case d.GetName() == "" || len(d.GetName()) > maxName:
			return bad("failureDomains[%d].name: must have 1 to %d characters", i, maxName)
		case seen[d.GetName()]:
			return bad("failureDomains[%d].name: %q occurs twice", i, d.GetName())
		case len(d.GetAttributes()) > maxAttributes:
			return bad("failureDomains[%d].attributes: must be at most %d", i, maxAttributes)
		}
		seen[d.GetName()] = true
	}
	return asError(checkOutputs(r.GetOutputs().GetRaw()))
}

func checkOutputs(raw []byte) *Error {
	if len(raw) == 0 {
		return nil
	}
	if len(raw) > limits.OutputBytes {
		return bad("outputs: must have at most %d bytes, have %d", limits.OutputBytes, len(raw))
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return bad("outputs: must be a JSON object")
	}
	if len(members) > maxMembers {
		return bad("outputs: must have at most %d members", maxMembers)
	}
	return nil
}

func checkMachine(r *hooksv1alpha1.ReconcileMachineResponse, prefix, recorded string) error {
	if err := checkPhase(r); err != nil {
		return err
	}
	id := r.GetProviderId()
	if id == "" && r.GetPhase() == hooksv1alpha1.Phase_PHASE_READY {
		return bad("providerId is missing, but phase is Ready: without it, the Node of the machine could not be found")
	}
	if id != recorded {
		if err := checkProviderID("providerId", id, prefix); err != nil {
			return err
		}
	}
	if len(r.GetFailureDomain()) > maxName {
		return bad("failureDomain: must have at most %d characters", maxName)
	}
	return asError(checkAddresses("addresses", r.GetAddresses()))
}

// checkProviderID checks a provider ID, which may be empty. An empty prefix allows every other.
func checkProviderID(at, id, prefix string) *Error {
	switch {
	case id == "":
		return nil
	case len(id) > maxProviderID || strings.ContainsFunc(id, notInID):
		return bad("%s: must have at most %d characters, and no spaces", at, maxProviderID)
	case !strings.HasPrefix(id, prefix) || id == prefix:
		return bad("%s: %q does not begin with %q, the prefix that the extension announces", at, id, prefix)
	}
	return nil
}

// notInID reports whether a character does not belong in a provider ID or a host.
func notInID(r rune) bool { return r <= ' ' || r == 0x7f }

func checkPrefix(s string) error {
	if len(s) > maxPrefix || strings.ContainsFunc(s, notInID) || !prefix.MatchString(s) {
		return bad("providerIdPrefix: must be a scheme such as acme://, with at most %d characters", maxPrefix)
	}
	return nil
}

func checkAddresses(at string, addresses []*hooksv1alpha1.MachineAddress) *Error {
	if len(addresses) > limits.MachineAddresses {
		return bad("%s: has %d entries, but at most %d are allowed", at, len(addresses), limits.MachineAddresses)
	}
	for i, a := range addresses {
		if !slices.Contains(addressTypes, clusterv1.MachineAddressType(a.GetType())) {
			return bad("%s[%d].type: must be Hostname, ExternalIP, InternalIP, ExternalDNS or InternalDNS", at, i)
		}
		if a.GetAddress() == "" || len(a.GetAddress()) > maxName {
			return bad("%s[%d].address: must have 1 to %d characters", at, i, maxName)
		}
	}
	return nil
}

// deletion is what the answers of deletions have.
type deletion interface {
	answer
	GetState() hooksv1alpha1.DeletionState
}

func checkDeletion[R deletion](r R) error {
	switch r.GetState() {
	case hooksv1alpha1.DeletionState_DELETION_STATE_DELETING, hooksv1alpha1.DeletionState_DELETION_STATE_GONE:
		return nil
	default:
		return bad("state is missing: it is not known whether anything is left")
	}
}

// asError avoids an error that is not nil but holds nil.
func asError(err *Error) error {
	if err == nil {
		return nil
	}
	return err
}
