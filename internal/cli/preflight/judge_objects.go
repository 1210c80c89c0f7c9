// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/text"
)

// objects are the findings about the Cluster API objects in the requests of a handler.
type objects struct {
	findings []Finding
	policies []ProposedPolicy
	unstated bool // the first finding is that no version is stated, and the version follows from Target.From
}

// objectFindings returns the findings about the Cluster API objects that the target sends to a handler. version is the
// version that the handler gets now, if no version is stated and this one is known.
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
		return o, ever[0] // for whatever release it was built
	case now.ObjectVersion == "":
		f := about(x, h, Warn, ruleNotStated)
		older := slices.DeleteFunc(ever, func(v string) bool { return v == sent.ObjectVersion })
		f.Problem = fmt.Sprintf("Cluster API %s sends %s as %s, older releases sent them as %s, and nothing states "+
			"which version the handler understands",
			t.ClusterAPI.Name, plural(sent.Kind), sent.ObjectVersion, strings.Join(older, ", "))
		f.Remedy = "give --from " + ClusterAPI + "=VERSION to say which Cluster API runs now, or set " +
			"clusterAPIVersion in an ExtensionPolicy to the version that the handler understands"
		if t.From != nil {
			f.Remedy = "set clusterAPIVersion in an ExtensionPolicy to the version that the handler understands: " +
				"the version cannot be told from " + t.From.Name + ", which does not call the handler"
		}
		o.findings = []Finding{f}
		return o, ""
	}
	o.unstated = true
	f := about(x, h, Break, ruleObjectsChange)
	f.Problem = fmt.Sprintf("Cluster API %s sends %s as %s, but Cluster API %s sends them as %s; nothing states which "+
		"version the handler understands, so it may read members that are not there",
		t.From.Name, plural(now.Kind), now.ObjectVersion, t.ClusterAPI.Name, sent.ObjectVersion)
	if sent.Kind == "ClusterClassVariable" {
		f = about(x, h, Degrade, ruleVariables)
		before, after := metadataMember(now.ObjectVersion), metadataMember(sent.ObjectVersion)
		f.Problem = fmt.Sprintf("Cluster API %s reads the metadata of a variable from the member %s, but Cluster "+
			"API %s reads it from %s; nothing states which member the handler sets",
			t.From.Name, before, t.ClusterAPI.Name, after)
		f.Lost = []string{"variables[*]." + before}
	}
	o.findings = []Finding{f}
	return o, now.ObjectVersion
}

// remedyDirect sets what to do about the objects of an extension that Cluster API calls itself.
func (t *Target) remedyDirect(findings []Finding) {
	for i := range findings {
		findings[i].Remedy = "upgrade the extension together with Cluster API, or put a gateway before it: register it " +
			"in the group that the gateway reads instead, and set clusterAPIVersion in an ExtensionPolicy to the version " +
			"that it understands"
		if findings[i].Rule == ruleNotStated && t.From == nil {
			findings[i].Remedy = "give --from " + ClusterAPI + "=VERSION to say which Cluster API runs now"
		}
	}
}

// remedyLocal sets what to do about the objects of a HookRule or HookJob for which no version is stated.
func remedyLocal(kind string, findings []Finding) {
	for i := range findings {
		if f := &findings[i]; f.Rule == ruleObjectsChange || f.Rule == ruleVariables || f.Rule == ruleNotStated {
			f.Remedy = "set spec.clusterAPIVersion of the " + kind + " to the version whose members it reads"
		}
	}
}

// metadataMember returns the name of the member of a variable that holds its metadata.
func metadataMember(version string) string {
	if version == hook.ClusterAPIV1Beta1 {
		return "metadata"
	}
	return "deprecatedV1Beta1Metadata"
}

// stated returns the findings about a handler for which a version is stated.
func (t *Target) stated(x *Extension, h *Handler, sent catalog.ClusterAPIHook, stated string, v *Inventory) objects {
	var o objects
	ever := catalog.EverSent(h.Hook.Hook)
	byPolicyForAll := h.Policy != nil && h.Policy.ForAll && h.Policy.States != ""
	if byPolicyForAll && len(ever) > 0 && !slices.Contains(ever, stated) {
		f := about(x, h, Warn, ruleNeverSent)
		built := ever[len(ever)-1]
		f.Problem = fmt.Sprintf("ExtensionPolicy %s says that all handlers understand %s, "+
			"but no release of Cluster API sent %s of %s for this hook", h.Policy.Name, stated,
			plural(sent.Kind), stated)
		if own := h.Policy.Own; own != nil {
			f.Remedy = stating(own, built)
		} else {
			p := newPolicy(x.Name, h.Name, built, v.WatchFilter)
			f.Remedy = "give the handler a policy of its own: apply ExtensionPolicy " + p.Name
			f.Policies, o.policies = []string{p.Name}, []ProposedPolicy{p}
		}
		o.findings = append(o.findings, f)
	}
	switch {
	case stated == sent.ObjectVersion:
		return o
	case !convertible(sent.ObjectVersion, stated):
		f := about(x, h, Break, ruleCannotConvert)
		f.Problem = fmt.Sprintf("Cluster API %s sends %s of %s, and the gateway cannot convert these objects to %s",
			t.ClusterAPI.Name, plural(sent.Kind), sent.ObjectVersion, stated)
		f.Remedy = "upgrade the extension, or the gateway"
		o.findings = append(o.findings, f)
	default:
		o.findings = append(o.findings, t.references(x, h, sent, stated, v)...)
		if lost := t.Lossy(sent.Kind, sent.ObjectVersion, stated); len(lost) > 0 {
			f := about(x, h, Degrade, ruleMembersLost)
			f.Problem = fmt.Sprintf("Cluster API %s sends %s of %s, which the gateway converts to %s: members "+
				"that this version cannot express never reach the handler", t.ClusterAPI.Name, plural(sent.Kind),
				sent.ObjectVersion, stated)
			f.Remedy = "check whether the handler needs what is lost; nothing is lost with an extension that " +
				"understands " + sent.ObjectVersion
			f.Lost = lost
			o.findings = append(o.findings, f)
		}
	}
	return o
}

// maxUnresolved is the number of kinds that a finding names.
const maxUnresolved = 3

// references returns a finding unless the references of Clusters can be converted: in v1beta1 they have a version,
// which must be known.
func (t *Target) references(
	x *Extension, h *Handler, sent catalog.ClusterAPIHook, stated string, v *Inventory,
) []Finding {
	if sent.Kind != "Cluster" || stated != hook.ClusterAPIV1Beta1 {
		return nil
	}
	switch {
	case len(v.Unresolved) > 0:
		f := about(x, h, Break, ruleCannotConvert)
		f.Problem = "the gateway cannot convert some Clusters in use to v1beta1: " +
			text.Join(v.Unresolved, "; ", maxUnresolved)
		f.Remedy = "label these CustomResourceDefinitions as Cluster API's contract requires, or upgrade the " +
			"extension to one that understands " + sent.ObjectVersion
		return []Finding{f}
	case v.Unchecked != "":
		f := about(x, h, Warn, ruleReferences)
		f.Problem = "the gateway converts Clusters to v1beta1, but it is not known whether the gateway can tell " +
			"the versions of the objects that the Clusters refer to: " + v.Unchecked
		f.Remedy = "run the command again with that right; for a directory, add the CustomResourceDefinitions " +
			"of your providers to it"
		return []Finding{f}
	}
	return nil
}

// fine returns why a handler has no problem.
func (t *Target) fine(h *Handler) string {
	if t.ClusterAPI == nil {
		return "the gateway has the hook"
	}
	sent, ok := t.ClusterAPI.Hook(h.Hook.Hook)
	switch stated := h.Understands(); {
	case !ok || sent.Kind == "":
		return "its requests carry no Cluster API objects"
	case stated == sent.ObjectVersion:
		return fmt.Sprintf("the handler understands %s of %s, which Cluster API %s sends",
			plural(sent.Kind), stated, t.ClusterAPI.Name)
	case stated != "":
		return fmt.Sprintf("the gateway converts %s from %s to %s without a loss",
			plural(sent.Kind), sent.ObjectVersion, stated)
	case t.From != nil && sent.ObjectVersion != "" && len(catalog.EverSent(h.Hook.Hook)) > 1:
		return fmt.Sprintf("Cluster API sends %s of %s both now (%s) and after the upgrade (%s)",
			plural(sent.Kind), sent.ObjectVersion, t.From.Name, t.ClusterAPI.Name)
	}
	return fmt.Sprintf("every release of Cluster API that calls the hook sends %s of %s", plural(sent.Kind),
		sent.ObjectVersion)
}

func plural(kind string) string { return kind + "s" }
