// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/hook"
)

// ProposedPolicy is an ExtensionPolicy to apply.
type ProposedPolicy struct {
	Name            string `json:"name"`
	ExtensionConfig string `json:"extensionConfig"`
	Handler         string `json:"handler,omitempty"`
	States          string `json:"clusterAPIVersion,omitempty"`
	Release         string `json:"clusterAPIRelease,omitempty"`
	watchFilter     string
	// Manifest is the policy as YAML.
	Manifest string `json:"manifest"`
}

func newPolicy(extensionConfig, handler, states, watchFilter string) ProposedPolicy {
	return (&ProposedPolicy{
		ExtensionConfig: extensionConfig, Handler: handler, States: states, watchFilter: watchFilter,
	}).written()
}

// written returns the policy with its name and its manifest.
func (p *ProposedPolicy) written() ProposedPolicy {
	extensionConfig, handler := p.ExtensionConfig, p.Handler
	w := *p
	w.Name = extensionConfig + "-cluster-api"
	target := "    name: " + extensionConfig + "\n"
	if handler != "" {
		w.Name = extensionConfig + "-" + handler + "-cluster-api"
		target += "    handler: " + handler + "\n"
	}
	labels := ""
	if p.watchFilter != "" {
		labels = fmt.Sprintf("  labels:\n    cluster.x-k8s.io/watch-filter: %q\n", p.watchFilter)
	}
	w.Manifest = "apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata:\n  name: " + w.Name + "\n" +
		labels + "spec:\n  targetRef:\n" + target
	if p.States != "" {
		w.Manifest += "  clusterAPIVersion: " + p.States + "\n"
	}
	if p.Release != "" {
		w.Manifest += "  clusterAPIRelease: " + p.Release + "\n"
	}
	return w
}

// Manifests returns the policies to apply as YAML documents, or "".
func (r *Report) Manifests() string {
	documents := make([]string, len(r.Policies))
	for i, p := range r.Policies {
		documents[i] = p.Manifest
	}
	return strings.Join(documents, "---\n")
}

// need is the version to state for a handler, so that it gets the same objects after the upgrade as now.
type need struct {
	handler *Handler
	version string
	// finding is the index of the finding that the need remedies, or -1 if another handler's policy causes the need.
	finding int
}

// propose adds remedies to the findings that meet the needs of the handlers of one extension, and returns the policies
// for them. A target has at most one policy: one that exists is to be completed. What the policy of a handler does not
// state comes from the one for all.
func propose(x *Extension, needs []need, findings []Finding, watchFilter string) []ProposedPolicy {
	common := commonVersion(needs)
	if common == "" {
		return nil
	}
	edit := map[string]string{} // policies to complete, by name
	var beside []string         // what else to do, so that the version for all is not for these handlers
	forAll := false             // a version will be stated for all handlers
	var proposed []ProposedPolicy
	for _, n := range needs {
		switch p := n.handler.Policy; {
		case p == nil && n.version == common:
			if n.finding >= 0 && !forAll {
				proposed, forAll = append(proposed, newPolicy(x.Name, "", common, watchFilter)), true
			}
		case p != nil && n.finding >= 0 && (!p.ForAll || n.version == common):
			edit[p.Name] = n.version
			forAll = forAll || p.ForAll
		}
	}
	for _, n := range needs {
		switch p := n.handler.Policy; {
		case n.version == common || !forAll && n.finding < 0:
		case p == nil || p.ForAll:
			proposed = append(proposed, newPolicy(x.Name, n.handler.Name, n.version, watchFilter))
		case n.finding < 0:
			beside = append(beside, stating(p, n.version))
		}
	}
	slices.SortFunc(proposed, func(a, b ProposedPolicy) int { return cmp.Compare(a.Name, b.Name) })
	var names []string
	for _, p := range proposed {
		names = append(names, p.Name)
	}
	for _, n := range needs {
		if n.finding < 0 {
			continue
		}
		f := &findings[n.finding]
		var do []string
		p := n.handler.Policy
		if p != nil && edit[p.Name] != "" {
			do = append(do, stating(p, edit[p.Name]))
		}
		do = append(do, beside...)
		if len(names) > 0 {
			do = append(do, "apply ExtensionPolicy "+strings.Join(names, ", "))
		}
		f.Remedy = fmt.Sprintf("if the extension was built for %s, %s; if it understands %s, state this version instead",
			n.version, strings.Join(do, ", and "), other(n.version))
		f.Policies = names
	}
	return proposed
}

// stating says how to complete a policy.
func stating(p *Policy, version string) string {
	return fmt.Sprintf("add clusterAPIVersion: %s to the spec of ExtensionPolicy %s%s", version, p.Name, in(p.Location))
}

// commonVersion returns the version that the first handler with a finding needs, or "".
func commonVersion(needs []need) string {
	for _, n := range needs {
		if n.finding >= 0 {
			return n.version
		}
	}
	return ""
}

// other returns the other version of Cluster API objects.
func other(version string) string {
	if version == hook.ClusterAPIV1Beta1 {
		return hook.ClusterAPIV1Beta2
	}
	return hook.ClusterAPIV1Beta1
}

func in(l Location) string {
	if s := l.String(); s != "" {
		return " (" + s + ")"
	}
	return ""
}
