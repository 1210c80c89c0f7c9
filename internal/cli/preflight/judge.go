// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
)

// Judge returns the effects of the target on the registrations.
func Judge(inventory Inventory, t Target) Report {
	r := Report{
		Targets: t.names(), Findings: []Finding{}, Policies: []ProposedPolicy{},
	}
	r.Announced = t.ClusterAPI != nil && t.ClusterAPI.Announced
	t.Lossy = memoize(t.Lossy)
	if t.From != nil {
		r.From, r.FromSource = ClusterAPI+"="+t.From.Name, t.FromSource
	}
	for _, u := range inventory.Unreadable {
		problem := u.Reason
		if u.Object != "" {
			problem = u.Object + ": " + problem
		}
		r.Findings = append(r.Findings, Finding{
			Level: Break, Rule: ruleUnreadable, Problem: problem, Remedy: "correct the manifest", Location: u.Location,
		})
	}
	for _, p := range inventory.Ignored {
		r.Findings = append(r.Findings, Finding{
			Level: Warn, Rule: rulePolicy, ExtensionConfig: p.ExtensionConfig, ExtensionPolicy: p.Name,
			Problem: fmt.Sprintf("ExtensionPolicy %s states a version of Cluster API objects, but is not in effect: %s",
				p.Name, p.Reason),
			Remedy: "correct or delete the policy", Location: p.Location,
		})
	}
	named := map[string]int{}
	for i := range inventory.Extensions {
		named[inventory.Extensions[i].Name]++
		switch inventory.Extensions[i].InProcess {
		case hookRule:
			r.HookRules++
		case hookJob:
			r.HookJobs++
		default:
			r.ExtensionConfigs++
		}
	}
	for i := range inventory.Extensions {
		x := inventory.Extensions[i]
		x.Handlers = slices.Clone(x.Handlers)
		slices.SortFunc(x.Handlers, func(a, b Handler) int { return cmp.Compare(a.Name, b.Name) })
		r.Handlers += len(x.Handlers)
		findings, policies := t.judge(&x, &inventory)
		for j := range findings {
			if named[x.Name] > 1 {
				findings[j].Group = x.Group
			}
		}
		r.Findings = append(r.Findings, findings...)
		r.Policies = append(r.Policies, policies...)
	}
	r.HandlerChains = len(inventory.Chains)
	r.Findings = append(r.Findings, t.chainFindings(&inventory, r.Findings)...)
	sortFindings(r.Findings)
	slices.SortFunc(r.Policies, func(a, b ProposedPolicy) int { return cmp.Compare(a.Name, b.Name) })
	return r
}

// memoize returns lossy with a memory: it is slow.
func memoize(lossy func(kind, from, to string) []string) func(kind, from, to string) []string {
	known := map[[3]string][]string{}
	return func(kind, from, to string) []string {
		key := [3]string{kind, from, to}
		if _, ok := known[key]; !ok {
			known[key] = lossy(kind, from, to)
		}
		return known[key]
	}
}

// judge returns the findings about one ExtensionConfig and the policies to apply.
func (t *Target) judge(x *Extension, v *Inventory) (findings []Finding, policies []ProposedPolicy) {
	if x.Undiscovered != "" {
		level := Unknown
		if len(x.Handlers) > 0 { // those that were known before are judged
			level = Warn
		}
		findings = append(findings, Finding{
			Level: level, Rule: ruleUndiscovered, ExtensionConfig: x.Name, Location: x.Location,
			Problem: x.Undiscovered, Remedy: x.Discover,
		})
	}
	if IsGateway(x, t.Hooks) && v.OfGateways {
		return append(findings, ofGateway(x)...), nil
	}
	if IsGateway(x, t.Hooks) {
		findings = append(findings, Finding{
			Level: Warn, Rule: ruleGateway, ExtensionConfig: x.Name, Location: x.Location,
			Problem: "the extension is a gateway: its handlers stand for those registered with that gateway, " +
				"which are not judged here",
			Remedy: "run preflight for that gateway, too: with its directory, or with its API group, such as " +
				"--extension-config-group runtime.hookgate.dev",
		})
		return append(findings, ofGateway(x)...), nil
	}
	var needs []need
	for i := range x.Handlers {
		h := &x.Handlers[i]
		found := t.hookFindings(x, h)
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.Level == Break }) && t.ClusterAPI != nil {
			objects, version := t.objectFindings(x, h, v)
			switch {
			case x.Direct:
				version = "" // nothing that a policy could state
				t.remedyDirect(objects.findings)
			case x.InProcess != "":
				version = "" // which it states itself
				remedyLocal(x.InProcess, objects.findings)
			}
			policies = append(policies, objects.policies...)
			if version != "" {
				n := need{handler: h, version: version, finding: -1}
				if objects.unstated {
					n.finding = len(findings) + len(found)
				}
				needs = append(needs, n)
			}
			found = append(found, objects.findings...)
			found = append(found, t.changeFindings(x, h)...)
		}
		if len(found) == 0 {
			f := about(x, h, OK, ruleOK)
			f.Problem = t.fine(h)
			found = append(found, f)
		}
		findings = append(findings, found...)
	}
	policies = append(policies, propose(x, needs, findings, v.WatchFilter)...)
	return findings, t.proposeReleases(x, findings, policies, v.WatchFilter)
}

// about returns a finding about a handler.
func about(x *Extension, h *Handler, level Level, rule string) Finding {
	f := Finding{Level: level, Rule: rule, ExtensionConfig: x.Name, Handler: h.Name, Location: h.Location}
	switch x.InProcess {
	case hookRule:
		f.ExtensionConfig, f.HookRule = "", x.Name
	case hookJob:
		f.ExtensionConfig, f.HookJob = "", x.Name
	}
	if h.Useless == "" {
		f.Hook = h.Hook.String()
	}
	if h.Policy != nil {
		f.ExtensionPolicy = h.Policy.Name
	}
	return f
}

// ofGateway returns the findings about the handlers of a gateway: they are well.
func ofGateway(x *Extension) (findings []Finding) {
	for i := range x.Handlers {
		f := about(x, &x.Handlers[i], OK, ruleOK)
		f.Problem = "it is the handler of a gateway, which accepts objects of every version"
		findings = append(findings, f)
	}
	return findings
}

// IsGateway reports whether an extension is a gateway. A gateway announces, for each lifecycle hook, a handler with the
// name of the hook, which represents all handlers that are registered with it. Those of other groups than Cluster API's
// it does not announce to Cluster API.
func IsGateway(x *Extension, hooks *catalog.Catalog) bool {
	n := 0
	for _, h := range hooks.Hubs() {
		if !h.Mergeable || h.Group != hook.Group {
			continue
		}
		n++
		isFor := func(o Handler) bool { return o.Name == strings.ToLower(h.Hook) && o.Hook.GroupHook() == h.GroupHook() }
		if !slices.ContainsFunc(x.Handlers, isFor) {
			return false
		}
	}
	return n > 0
}
