// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/admission"
	"github.com/hookgate/hookgate/internal/calls/circuit"
)

// Policy is the content of one ExtensionPolicy. Zero fields leave the settings of the extension unchanged.
type Policy struct {
	// Name is the name of the ExtensionPolicy.
	Name string
	// Kind is the kind of the object that has the policy, if it is not an ExtensionPolicy.
	Kind string
	// Wider is the name of the policy for the whole ExtensionConfig from which the fields come that this one does not
	// set. It is empty for a policy as it was written.
	Wider string

	// Timeout replaces the handler's timeout for one call.
	Timeout time.Duration
	// FailurePolicy replaces the handler's failure policy.
	FailurePolicy hook.FailurePolicy
	// ClusterAPIVersion replaces the version of embedded Cluster API objects that the extension states.
	ClusterAPIVersion string
	// ClusterAPIRelease is the release of Cluster API whose requests the handlers understand.
	ClusterAPIRelease string
	// Order puts the handler before those without an order, lowest first. Nil means no order.
	Order *int32

	// Limits, Circuit and CacheTTL concern the whole extension, and are set only in a policy for all handlers. Nil means
	// the defaults.
	Limits  *admission.Limits
	Circuit *circuit.Settings
	// CacheTTL is for how long answers of deterministic hooks are kept. Zero means that they are not.
	CacheTTL time.Duration
	// Hooks and OnUndiscovered concern the whole extension, too. Hooks are the only hooks whose handlers it may
	// register; empty means all. OnUndiscovered is Fail or Ignore, or empty for the default of the registration.
	Hooks          []string
	OnUndiscovered hook.FailurePolicy
	// OfferAs says under which names the handlers of the extension are offered. Empty means Qualified.
	OfferAs OfferAs

	// ObjectSelector matches the labels of the object that a request is about. Nil matches all.
	ObjectSelector labels.Selector
	// Conditions match the request. Nil matches all.
	Conditions *Conditions
	// Messages says what becomes of the messages of answers. Empty means Verbatim.
	Messages Messages
	// Lifted are holds that are lifted. Nil lifts none.
	Lifted *LiftedHolds
}

// OfferAs says under which names handlers are offered to callers that name them.
type OfferAs string

// Qualified names have the name of the ExtensionConfig. Original ones are those of the extension.
const (
	Qualified OfferAs = "Qualified"
	Original  OfferAs = "Original"
)

// Messages says what becomes of the messages of answers.
type Messages string

// Verbatim messages are those of the handler. Steady ones have placeholders for what changes from call to call.
const (
	Verbatim Messages = "Verbatim"
	Steady   Messages = "Steady"
)

// Masking returns Steady if p, which may be nil, masks what changes in messages, and nothing if it does not.
func (p *Policy) Masking() Messages {
	if p == nil || p.Messages != Steady {
		return ""
	}
	return Steady
}

// Over returns p, the policy for one handler, with the fields that it does not set taken from the policy for the whole
// ExtensionConfig. Either may be nil.
func (p *Policy) Over(wider *Policy) *Policy {
	if p == nil || wider == nil {
		return cmp.Or(p, wider)
	}
	merged := *wider // what concerns the whole extension is there only
	merged.Name, merged.Wider = p.Name, wider.Name
	merged.Timeout = cmp.Or(p.Timeout, wider.Timeout)
	merged.FailurePolicy = cmp.Or(p.FailurePolicy, wider.FailurePolicy)
	merged.ClusterAPIVersion = cmp.Or(p.ClusterAPIVersion, wider.ClusterAPIVersion)
	merged.ClusterAPIRelease = cmp.Or(p.ClusterAPIRelease, wider.ClusterAPIRelease)
	merged.Order = cmp.Or(p.Order, wider.Order)
	merged.Conditions = cmp.Or(p.Conditions, wider.Conditions)
	merged.Messages = cmp.Or(p.Messages, wider.Messages)
	merged.Lifted = cmp.Or(p.Lifted, wider.Lifted)
	if p.ObjectSelector != nil {
		merged.ObjectSelector = p.ObjectSelector
	}
	return &merged
}

// String names the policy in messages.
func (p *Policy) String() string {
	if p.Wider == "" {
		return fmt.Sprintf("%s %q", cmp.Or(p.Kind, "ExtensionPolicy"), p.Name)
	}
	return fmt.Sprintf("ExtensionPolicy %q over %q", p.Name, p.Wider)
}

// Allows reports whether p, which may be nil, lets the extension register handlers of a hook.
func (p *Policy) Allows(hookName string) bool {
	return p == nil || len(p.Hooks) == 0 || slices.Contains(p.Hooks, hookName)
}
