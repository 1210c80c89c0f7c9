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

// Judge tells what the target means for what is registered.
func Judge(inventory Inventory, t Target) Report {
	r := Report{Targets: t.names(), Findings: []Finding{}, Policies: []ProposedPolicy{}, ExtensionConfigs: len(inventory.Extensions)}
	t.Lossy = kept(t.Lossy)
	if t.From != nil {
		r.From, r.FromSource = ClusterAPI+"="+t.From.Name, t.FromSource
	}
	for _, u := range inventory.Unreadable {
		problem := u.Reason
		if u.Object != "" {
			problem = u.Object + ": " + problem
		}
		r.Findings = append(r.Findings, Finding{Level: Break, Rule: ruleUnreadable, Problem: problem, Remedy: "correct the manifest", Location: u.Location})
	}
	for _, p := range inventory.Ignored {
		r.Findings = append(r.Findings, Finding{
			Level: Warn, Rule: rulePolicy, ExtensionConfig: p.ExtensionConfig, ExtensionPolicy: p.Name,
			Problem: fmt.Sprintf("ExtensionPolicy %s states a version of Cluster API objects, and is not in effect: %s", p.Name, p.Reason),
			Remedy:  "correct or delete the policy", Location: p.Location,
		})
	}
	for i := range inventory.Extensions {
		x := inventory.Extensions[i]
		x.Handlers = slices.Clone(x.Handlers)
		slices.SortFunc(x.Handlers, func(a, b Handler) int { return cmp.Compare(a.Name, b.Name) })
		r.Handlers += len(x.Handlers)
		findings, policies := t.judge(&x, &inventory)
		r.Findings = append(r.Findings, findings...)
		r.Policies = append(r.Policies, policies...)
	}
	sortFindings(r.Findings)
	slices.SortFunc(r.Policies, func(a, b ProposedPolicy) int { return cmp.Compare(a.Name, b.Name) })
	return r
}

// kept returns lossy with a memory, because it takes long.
func kept(lossy func(kind, from, to string) []string) func(kind, from, to string) []string {
	known := map[[3]string][]string{}
	return func(kind, from, to string) []string {
		key := [3]string{kind, from, to}
		if _, ok := known[key]; !ok {
			known[key] = lossy(kind, from, to)
		}
		return known[key]
	}
}

// judge judges one ExtensionConfig.
func (t *Target) judge(x *Extension, v *Inventory) (findings []Finding, policies []ProposedPolicy) {
	if x.Undiscovered != "" {
		findings = append(findings, Finding{
			Level: Warn, Rule: ruleUndiscovered, ExtensionConfig: x.Name, Location: x.Location,
			Problem: x.Undiscovered, Remedy: x.Discover,
		})
	}
	if t.isGateway(x) {
		findings = append(findings, Finding{
			Level: Warn, Rule: ruleGateway, ExtensionConfig: x.Name, Location: x.Location,
			Problem: "the extension is a gateway: its handlers stand for what is registered with it, which is not judged here",
			Remedy:  "ask about what is registered with it: in its directory, or in its API group, as with --extension-config-group runtime.hookgate.dev",
		})
		for i := range x.Handlers {
			f := about(x, &x.Handlers[i], OK, ruleOK)
			f.Problem = "it is that of a gateway, which takes objects of every version"
			findings = append(findings, f)
		}
		return findings, nil
	}
	var needs []need
	for i := range x.Handlers {
		h := &x.Handlers[i]
		found := t.hookFindings(x, h)
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.Level == Break }) && t.ClusterAPI != nil {
			objects, version := t.objectFindings(x, h, v)
			policies = append(policies, objects.policies...)
			if version != "" {
				n := need{handler: h, version: version, finding: -1}
				if objects.unstated {
					n.finding = len(findings) + len(found)
				}
				needs = append(needs, n)
			}
			found = append(found, objects.findings...)
		}
		if len(found) == 0 {
			f := about(x, h, OK, ruleOK)
			f.Problem = t.fine(h)
			found = append(found, f)
		}
		findings = append(findings, found...)
	}
	return findings, append(policies, propose(x, needs, findings, v.WatchFilter)...)
}

func about(x *Extension, h *Handler, level Level, rule string) Finding {
	f := Finding{Level: level, Rule: rule, ExtensionConfig: x.Name, Handler: h.Name, Location: h.Location}
	if h.Useless == "" {
		f.Hook = h.Hook.String()
	}
	if h.Policy != nil {
		f.ExtensionPolicy = h.Policy.Name
	}
	return f
}

// isGateway tells whether an extension is a gateway: that has, for each lifecycle hook, a handler named as the hook, which
// stands for all that are registered with it.
func (t *Target) isGateway(x *Extension) bool {
	n := 0
	for _, h := range t.Hooks.Hubs() {
		if !h.Mergeable {
			continue
		}
		n++
		if !slices.ContainsFunc(x.Handlers, func(o Handler) bool { return o.Name == strings.ToLower(h.Hook) && o.Hook.Hook == h.Hook }) {
			return false
		}
	}
	return n > 0
}

// hookFindings judges the hook of a handler, and its version.
func (t *Target) hookFindings(x *Extension, h *Handler) []Finding {
	release := t.release()
	broken := func(rule, problem, remedy string) []Finding {
		f := about(x, h, Break, rule)
		f.Problem, f.Remedy = problem, remedy
		return []Finding{f}
	}
	if h.Useless != "" {
		return broken(ruleHookUnknown, h.Useless, "upgrade the gateway to a release that has the hook, or take the handler out of the extension")
	}
	version, known := t.Hooks.Version(h.Hook.Group, h.Hook.Version)
	var described *catalog.Hook
	if known {
		described, _ = t.Hooks.Lookup(h.Hook)
	}
	switch {
	case !known:
		return broken(ruleHookUnknown, "no release of the gateway has hooks of "+h.Hook.APIVersion(), "take the handler out of the extension, or let it implement "+t.newest(h))
	case t.reached(version.Lifetime.Removed):
		return broken(ruleHookRemoved, fmt.Sprintf("release %s of the gateway has removed hooks of %s", version.Lifetime.Removed, h.Hook.APIVersion()),
			"upgrade the extension to one that implements hooks of "+version.Instead()+" before you upgrade the gateway")
	case version.Removed():
	case described == nil, described.Singleton():
		return broken(ruleHookUnknown, fmt.Sprintf("hooks of %s have no %s with handlers", h.Hook.APIVersion(), h.Hook.Hook), "take the handler out of the extension")
	case version.Lifetime.Introduced != "" && !t.reached(version.Lifetime.Introduced):
		return broken(ruleHookUnknown, fmt.Sprintf("hooks of %s came with release %s of the gateway, and the target is %s", h.Hook.APIVersion(), version.Lifetime.Introduced, release),
			"upgrade the gateway to "+version.Lifetime.Introduced+" or newer")
	}
	if f, ok := t.notCalled(x, h, described); ok {
		return []Finding{f}
	}
	var findings []Finding
	if f, ok := t.converted(x, h, described); ok {
		findings = append(findings, f)
	}
	if t.reached(version.Lifetime.Deprecated) {
		f := about(x, h, Warn, ruleDeprecated)
		f.Problem = fmt.Sprintf("hooks of %s are deprecated since release %s of the gateway", h.Hook.APIVersion(), version.Lifetime.Deprecated)
		f.Remedy = "upgrade the extension to one that implements hooks of " + version.Instead()
		findings = append(findings, f)
	}
	return findings
}

// converted judges what is lost where Cluster API calls the hook in another version than the handler has it.
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
	f.Problem = fmt.Sprintf("Cluster API %s calls the hook in %s, which the gateway converts to %s: what one of them cannot express is lost on the way",
		t.ClusterAPI.Name, called.APIVersion(), h.Hook.APIVersion())
	f.Remedy = "see whether the handler needs any of it; the loss ends with an extension that implements hooks of " + called.APIVersion()
	f.Lost = lost
	return f, true
}

// newest returns the newest version of the hooks of a group that the gateway has.
func (t *Target) newest(h *Handler) string {
	for _, v := range t.Hooks.Versions() {
		if v.Group == h.Hook.Group && !v.Removed() {
			return v.APIVersion()
		}
	}
	return "a hook that it has"
}

// notCalled judges whether Cluster API calls the hook, in a version that the gateway converts from.
func (t *Target) notCalled(x *Extension, h *Handler, described *catalog.Hook) (Finding, bool) {
	if t.ClusterAPI == nil {
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
		f.Problem = fmt.Sprintf("Cluster API %s calls the hook in %s, which the gateway does not convert", t.ClusterAPI.Name, called.APIVersion())
		f.Remedy = "upgrade the gateway to a release that has " + called.APIVersion()
		return f, true
	}
	return Finding{}, false
}

// objects is what Cluster API objects in requests mean for a handler.
type objects struct {
	findings []Finding
	policies []ProposedPolicy
	unstated bool // the first finding is that nobody says what the handler understands, and what that is follows from From
}

// objectFindings judges the Cluster API objects that the target sends to a handler. version is the one that the handler gets
// now, if nobody says what it understands and that follows from somewhere.
func (t *Target) objectFindings(x *Extension, h *Handler, v *Inventory) (o objects, version string) {
	sent, ok := t.ClusterAPI.Hook(h.Hook.Hook)
	if !ok || sent.Kind == "" {
		return o, ""
	}
	if stated := h.Understands(); stated != "" {
		return t.stated(x, h, sent, stated, v), ""
	}
	ever := catalog.EverSent(h.Hook.Hook)
	var now catalog.ClusterAPIHook
	if t.From != nil {
		now, _ = t.From.Hook(h.Hook.Hook)
	}
	switch {
	case now.ObjectVersion == sent.ObjectVersion:
		return o, now.ObjectVersion
	case now.ObjectVersion == "" && len(ever) == 1 && ever[0] == sent.ObjectVersion:
		return o, ever[0] // whatever it was built for
	case now.ObjectVersion == "":
		f := about(x, h, Warn, ruleNotStated)
		f.Problem = fmt.Sprintf("Cluster API %s sends %s of %s, older ones sent %s, and nobody says which the handler understands",
			t.ClusterAPI.Name, plural(sent.Kind), sent.ObjectVersion, strings.Join(slices.DeleteFunc(ever, func(v string) bool { return v == sent.ObjectVersion }), ", "))
		f.Remedy = "say which Cluster API runs now with --from " + ClusterAPI + "=VERSION, or state what the handler understands with clusterAPIVersion in an ExtensionPolicy"
		if t.From != nil {
			f.Remedy = "state what the handler understands with clusterAPIVersion in an ExtensionPolicy: " + t.From.Name + " does not call it, so nothing can be told from that"
		}
		o.findings = []Finding{f}
		return o, ""
	}
	o.unstated = true
	f := about(x, h, Break, ruleObjectsChange)
	f.Problem = fmt.Sprintf("Cluster API %s sends %s of %s, %s sends %s, and nobody says which the handler understands: it would read members that are not there",
		t.From.Name, plural(now.Kind), now.ObjectVersion, t.ClusterAPI.Name, sent.ObjectVersion)
	if sent.Kind == "ClusterClassVariable" {
		f = about(x, h, Degrade, ruleVariables)
		before, after := metadataMember(now.ObjectVersion), metadataMember(sent.ObjectVersion)
		f.Problem = fmt.Sprintf("Cluster API %s reads the metadata of a variable from %s, %s from %s, and nobody says which the handler answers",
			t.From.Name, before, t.ClusterAPI.Name, after)
		f.Lost = []string{"variables[*]." + before}
	}
	o.findings = []Finding{f}
	return o, now.ObjectVersion
}

// metadataMember returns the member of a variable that its metadata is in.
func metadataMember(version string) string {
	if version == hook.ClusterAPIV1Beta1 {
		return "metadata"
	}
	return "deprecatedV1Beta1Metadata"
}

// stated judges a handler of which somebody says what it understands.
func (t *Target) stated(x *Extension, h *Handler, sent catalog.ClusterAPIHook, stated string, v *Inventory) objects {
	var o objects
	if ever := catalog.EverSent(h.Hook.Hook); h.Policy != nil && h.Policy.ForAll && h.Policy.States != "" && !slices.Contains(ever, stated) && len(ever) > 0 {
		f := about(x, h, Warn, ruleNeverSent)
		built := ever[len(ever)-1]
		f.Problem = fmt.Sprintf("ExtensionPolicy %s says for all handlers that they understand %s, but no release of Cluster API sent %s of %s for this hook",
			h.Policy.Name, stated, plural(sent.Kind), stated)
		p := newPolicy(x.Name, h.Name, built, v.WatchFilter)
		f.Remedy = fmt.Sprintf("give the handler a policy of its own, which repeats what else %s says: apply ExtensionPolicy %s", h.Policy.Name, p.Name)
		f.Policies = []string{p.Name}
		o.findings, o.policies = append(o.findings, f), []ProposedPolicy{p}
	}
	switch {
	case stated == sent.ObjectVersion:
		return o
	case !convertible(sent.ObjectVersion, stated):
		f := about(x, h, Break, ruleCannotConvert)
		f.Problem = fmt.Sprintf("Cluster API %s sends %s of %s, and the gateway cannot convert them to %s", t.ClusterAPI.Name, plural(sent.Kind), sent.ObjectVersion, stated)
		f.Remedy = "upgrade the extension, or the gateway"
		o.findings = append(o.findings, f)
	default:
		o.findings = append(o.findings, t.references(x, h, sent, stated, v)...)
		if lost := t.Lossy(sent.Kind, sent.ObjectVersion, stated); len(lost) > 0 {
			f := about(x, h, Degrade, ruleMembersLost)
			f.Problem = fmt.Sprintf("Cluster API %s sends %s of %s, which the gateway converts to %s: what that cannot express does not reach the handler",
				t.ClusterAPI.Name, plural(sent.Kind), sent.ObjectVersion, stated)
			f.Remedy = "see whether the handler needs any of it; the loss ends with an extension that understands " + sent.ObjectVersion
			f.Lost = lost
			o.findings = append(o.findings, f)
		}
	}
	return o
}

// maxUnresolved is how many kinds a finding names.
const maxUnresolved = 3

// references judges whether the references of Clusters can be converted: those of v1beta1 have a version, which somebody must tell.
func (t *Target) references(x *Extension, h *Handler, sent catalog.ClusterAPIHook, stated string, v *Inventory) []Finding {
	if sent.Kind != "Cluster" || stated != hook.ClusterAPIV1Beta1 {
		return nil
	}
	switch n := len(v.Unresolved); {
	case n > 0:
		f := about(x, h, Break, ruleCannotConvert)
		f.Problem = "the gateway cannot convert Clusters to v1beta1 that are in use: " + strings.Join(v.Unresolved[:min(n, maxUnresolved)], "; ")
		if n > maxUnresolved {
			f.Problem += fmt.Sprintf("; and %d more", n-maxUnresolved)
		}
		f.Remedy = "label these CustomResourceDefinitions as Cluster API's contract wants it, or upgrade the extension to one that understands " + sent.ObjectVersion
		return []Finding{f}
	case v.Unchecked != "":
		f := about(x, h, Warn, ruleReferences)
		f.Problem = "the gateway converts Clusters to v1beta1, and whether it can tell the versions of what they refer to is not known: " + v.Unchecked
		f.Remedy = "ask again with that right"
		return []Finding{f}
	}
	return nil
}

// fine says why all is well with a handler.
func (t *Target) fine(h *Handler) string {
	if t.ClusterAPI == nil {
		return "the gateway has the hook"
	}
	sent, ok := t.ClusterAPI.Hook(h.Hook.Hook)
	switch stated := h.Understands(); {
	case !ok || sent.Kind == "":
		return "its requests carry no Cluster API objects"
	case stated == sent.ObjectVersion:
		return fmt.Sprintf("it understands %s of %s, which Cluster API %s sends", plural(sent.Kind), stated, t.ClusterAPI.Name)
	case stated != "":
		return fmt.Sprintf("the gateway converts %s from %s to %s without a loss", plural(sent.Kind), sent.ObjectVersion, stated)
	case t.From != nil && sent.ObjectVersion != "" && len(catalog.EverSent(h.Hook.Hook)) > 1:
		return fmt.Sprintf("Cluster API %s sends %s of %s, as %s does", t.ClusterAPI.Name, plural(sent.Kind), sent.ObjectVersion, t.From.Name)
	}
	return fmt.Sprintf("every Cluster API that calls the hook sends %s of %s", plural(sent.Kind), sent.ObjectVersion)
}

func plural(kind string) string { return kind + "s" }
