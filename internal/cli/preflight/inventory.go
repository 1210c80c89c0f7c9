// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"

	"github.com/hookgate/hookgate/hook"
)

// Inventory holds all registrations of a gateway.
type Inventory struct {
	// Extensions are the ExtensionConfigs, and the HookRules and HookJobs, whose handlers are called alike.
	Extensions []Extension
	// Chains are the HandlerChains of the gateway.
	Chains []Chain
	// Several are the hooks of which Cluster API takes one handler, if more are offered to it.
	Several []SeveralHandlers
	// Ignored are the policies that state a version of Cluster API objects and are not in effect.
	Ignored []IgnoredPolicy
	// Unreadable are the objects that could not be read; Judge does not see their handlers.
	Unreadable []Unreadable
	// Unresolved says, with an entry for each kind, which references of Clusters cannot be converted to v1beta1,
	// because the version of the object is not known, and what to do about it. Unchecked says why Unresolved is not
	// known; it is empty where there are no Clusters, as in a directory.
	Unresolved []string
	Unchecked  string
	// Registrations names each object of a cluster, as group/name@resourceVersion, by which a later change shows.
	Registrations []string
	// OfGateways is set if the inventory has what is registered with the gateways of the cluster, beside what is
	// registered with Cluster API.
	OfGateways bool
	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter without which policies take no effect; empty
	// for none.
	WatchFilter string
}

// Empty reports whether there is nothing to judge.
func (v *Inventory) Empty() bool {
	return len(v.Extensions)+len(v.Chains)+len(v.Ignored)+len(v.Unreadable) == 0
}

// Chain is a HandlerChain.
type Chain struct {
	Name     string
	Location Location
	// Hook is group/hook; empty if the chain is not valid.
	Hook hook.GroupHook
	// Steps are the registered names of its handlers, without optional ones.
	Steps []string
	// Broken is what keeps the chain from being called now; empty if nothing does.
	Broken string
}

// SeveralHandlers is a hook with more handlers than Cluster API takes.
type SeveralHandlers struct {
	Hook    hook.GroupHook
	Problem string
}

// Location is the file and line of a definition; File is empty for an object in a cluster.
type Location struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// String returns the form file:line.
func (l Location) String() string {
	if l.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", l.File, l.Line)
}

// The kinds of handlers without servers.
const (
	hookRule = "HookRule"
	hookJob  = "HookJob"
)

// Extension is one ExtensionConfig, or one HookRule or HookJob.
type Extension struct {
	Name string
	// InProcess is the kind of what has no server, HookRule or HookJob; empty for an ExtensionConfig.
	InProcess string
	Location  Location
	// Group is the API group of the ExtensionConfig, in a cluster.
	Group string
	// Direct reports whether Cluster API calls the extension itself, without a gateway that could convert anything.
	Direct bool
	// Undiscovered is the reason why the handlers are unknown, or known only from an earlier discovery, and Discover
	// the action to take. Both are empty if the handlers are known.
	Undiscovered, Discover string
	Handlers               []Handler
}

// Handler is one handler of an extension.
type Handler struct {
	// Name is the name that the extension gives it, without the name of the ExtensionConfig.
	Name     string
	Location Location
	// Hook is the hook that the handler implements. It is empty if Useless says why it is not known.
	Hook    hook.GroupVersionHook
	Useless string
	// States is the version of Cluster API objects that the handler understands, as the extension states it; empty if
	// it states none.
	States string
	// Policy is the ExtensionPolicy in effect for the handler; nil for none.
	Policy *Policy
	// Release is the release of Cluster API whose requests the handler understands, as a policy states it; empty if none
	// does.
	Release string
	// Ignores reports whether the extension states the failure policy Ignore.
	Ignores bool
}

// Policy is an ExtensionPolicy in effect.
type Policy struct {
	Name     string
	Location Location
	// ForAll reports whether the policy is for all handlers of the ExtensionConfig.
	ForAll bool
	// Own is the policy of the handler, if this one is for all handlers and states the version that Own does not state.
	Own *Policy
	// States is the version of Cluster API objects that the handler understands, as the policy states it; empty if it
	// states none.
	States string
}

// Understands returns the stated version of Cluster API objects that the handler understands, or "" if none is stated.
func (h *Handler) Understands() string {
	if h.Policy != nil && h.Policy.States != "" {
		return h.Policy.States
	}
	return h.States
}

// IgnoredPolicy is an ExtensionPolicy that is not in effect.
type IgnoredPolicy struct {
	Name            string
	ExtensionConfig string // of its target
	Location        Location
	Reason          string
}

// Unreadable is an object that could not be read.
type Unreadable struct {
	Object   string // as in ExtensionConfig "acme"; empty if that is not known
	Location Location
	Reason   string
}
