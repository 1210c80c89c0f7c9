// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"slices"

	"github.com/hookgate/hookgate/catalog"
)

// hookFindings returns the findings about the hook that a handler implements, and its version.
func (t *Target) hookFindings(x *Extension, h *Handler) []Finding {
	release := t.release()
	broken := func(rule, problem, remedy string) []Finding {
		f := about(x, h, Break, rule)
		f.Problem, f.Remedy = problem, remedy
		return []Finding{f}
	}
	if h.Useless != "" {
		return broken(ruleHookUnknown, h.Useless,
			"upgrade the gateway to a release that has the hook, or take the handler out of the extension")
	}
	version, known := t.Hooks.Version(h.Hook.Group, h.Hook.Version)
	var described *catalog.Hook
	if known {
		described, _ = t.Hooks.Lookup(h.Hook)
	}
	switch {
	case !known:
		return broken(ruleHookUnknown, "no release of the gateway has hooks of "+h.Hook.APIVersion(),
			"take the handler out of the extension, or let it implement "+t.newest(h))
	case t.reached(version, version.Lifetime.Removed):
		return broken(ruleHookRemoved,
			fmt.Sprintf("release %s of the gateway has removed hooks of %s",
				version.Lifetime.Removed, h.Hook.APIVersion()),
			"upgrade the extension to a version that implements hooks of "+version.Instead()+
				" before you upgrade the gateway")
	case version.Removed():
	case described == nil, described.Singleton():
		return broken(ruleHookUnknown,
			fmt.Sprintf("%s has no hook %s that can have handlers", h.Hook.APIVersion(), h.Hook.Hook),
			"take the handler out of the extension")
	case version.Lifetime.Introduced != "" && !t.reached(version, version.Lifetime.Introduced):
		return broken(ruleHookUnknown,
			fmt.Sprintf("hooks of %s came with release %s of the gateway, but the target is %s",
				h.Hook.APIVersion(), version.Lifetime.Introduced, release),
			"upgrade the gateway to "+version.Lifetime.Introduced+" or newer")
	}
	if f, ok := t.notCalled(x, h, described); ok {
		return []Finding{f}
	}
	var findings []Finding
	if f, ok := t.converted(x, h, described); ok {
		findings = append(findings, f)
	}
	if t.reached(version, version.Lifetime.Deprecated) {
		f := about(x, h, Warn, ruleDeprecated)
		f.Problem = fmt.Sprintf("hooks of %s are deprecated since release %s of the gateway",
			h.Hook.APIVersion(), version.Lifetime.Deprecated)
		f.Remedy = "upgrade the extension to a version that implements hooks of " + version.Instead()
		findings = append(findings, f)
	}
	return findings
}

// converted returns a finding, and true, if Cluster API calls the hook in another version than the handler implements,
// and the conversion can lose something.
func (t *Target) converted(x *Extension, h *Handler, described *catalog.Hook) (Finding, bool) {
	if t.ClusterAPI == nil || described == nil {
		return Finding{}, false
	}
	called, _ := t.ClusterAPI.Hook(h.Hook.Hook)
	from, ok := described.In(called.Version)
	if !ok || from == described {
		return Finding{}, false
	}
	lost := t.HookLosses(from, described)
	if len(lost) == 0 {
		return Finding{}, false
	}
	f := about(x, h, Degrade, ruleMembersLost)
	f.Problem = fmt.Sprintf("Cluster API %s calls version %s of the hook, which the gateway converts to %s: "+
		"members that one of the two versions cannot express are lost", t.ClusterAPI.Name, called.APIVersion(),
		h.Hook.APIVersion())
	f.Remedy = "check whether the handler needs what is lost; nothing is lost with an extension that implements " +
		"hooks of " +
		called.APIVersion()
	f.Lost = lost
	return f, true
}

// newest returns the newest version that the gateway has of the hooks in the group of a handler.
func (t *Target) newest(h *Handler) string {
	for _, v := range t.Hooks.Versions() {
		if v.Group == h.Hook.Group && !v.Removed() {
			return v.APIVersion()
		}
	}
	return "a hook that it has"
}

// notCalled returns a finding, and true, unless Cluster API calls the hook in a version that the gateway converts from.
// Hooks of other groups, such as those of infrastructure, have callers of their own.
func (t *Target) notCalled(x *Extension, h *Handler, described *catalog.Hook) (Finding, bool) {
	if t.ClusterAPI == nil || !t.callsGroup(h.Hook.Group) {
		return Finding{}, false
	}
	f := about(x, h, Break, ruleNotCalled)
	called, ok := t.ClusterAPI.Hook(h.Hook.Hook)
	if !ok || called.Group != h.Hook.Group {
		f.Problem = fmt.Sprintf("Cluster API %s does not call the hook", t.ClusterAPI.Name)
		f.Remedy = "keep a Cluster API that calls it, or take the handler out of the extension"
		return f, true
	}
	if called.Version == h.Hook.Version || described == nil {
		return Finding{}, false
	}
	if _, ok := described.In(called.Version); !ok {
		f.Problem = fmt.Sprintf("Cluster API %s calls version %s of the hook, which the gateway cannot convert",
			t.ClusterAPI.Name, called.APIVersion())
		f.Remedy = "upgrade the gateway to a release that has " + called.APIVersion()
		return f, true
	}
	return Finding{}, false
}

// callsGroup reports whether Cluster API calls hooks of the group.
func (t *Target) callsGroup(group string) bool {
	return slices.ContainsFunc(t.ClusterAPI.Hooks, func(h catalog.ClusterAPIHook) bool { return h.Group == group })
}
