// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"

	"github.com/hookgate/hookgate/hook"
)

// Inventory is what is registered with a gateway.
type Inventory struct {
	// Extensions are the ExtensionConfigs.
	Extensions []Extension
	// Ignored are the policies that state a version of Cluster API objects and are not in effect.
	Ignored []IgnoredPolicy
	// Unreadable is what could not be read, so that there may be handlers which nobody has judged.
	Unreadable []Unreadable
	// Unresolved says which objects Clusters refer to whose version nobody can tell, as conversions to v1beta1 must, with what to do:
	// an entry for each kind. Unchecked says why that is not known; it is empty also where nobody has Clusters, as in a directory.
	Unresolved []string
	Unchecked  string
	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter that policies must have to count; empty for none.
	WatchFilter string
}

// Location is where something is defined: a file with a line, or, if File is empty, an object in a cluster.
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

// Extension is one ExtensionConfig.
type Extension struct {
	Name     string
	Location Location
	// Undiscovered says why nobody knows the handlers, or only those of an earlier discovery, and Discover what to do about it.
	// Both are empty if somebody does.
	Undiscovered, Discover string
	Handlers               []Handler
}

// Handler is one handler of an extension.
type Handler struct {
	// Name is that of the discovery, without the ExtensionConfig's.
	Name     string
	Location Location
	// Hook is what it implements. It is empty if Useless says why it is not known.
	Hook    hook.GroupVersionHook
	Useless string
	// States is the version of Cluster API objects that the extension says the handler understands; empty if it does not say.
	States string
	// Policy is the ExtensionPolicy in effect for the handler; nil for none.
	Policy *Policy
}

// Policy is an ExtensionPolicy in effect.
type Policy struct {
	Name     string
	Location Location
	// ForAll tells that it is for all handlers of the ExtensionConfig that have none of their own.
	ForAll bool
	// States is the version of Cluster API objects that it says the handler understands; empty if it does not say.
	States string
}

// Understands returns the version that the handler is taken to understand; empty if nobody says.
func (h *Handler) Understands() string {
	if h.Policy != nil && h.Policy.States != "" {
		return h.Policy.States
	}
	return h.States
}

// IgnoredPolicy is an ExtensionPolicy that takes no effect.
type IgnoredPolicy struct {
	Name            string
	ExtensionConfig string // that it is for
	Location        Location
	Reason          string
}

// Unreadable is something that could not be read.
type Unreadable struct {
	Object   string // as in ExtensionConfig "acme"; empty if that is not known
	Location Location
	Reason   string
}
