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

// changeFindings returns the findings about what releases after the one that runs now, up to the target, changed for a
// handler besides the version of objects. If it is not known which one runs, it takes all releases that were compared,
// unless the handler is said to understand what only newer ones send.
func (t *Target) changeFindings(x *Extension, h *Handler) []Finding {
	if h.Hook.Group != hook.Group || x.InProcess != "" || t.Changes == nil {
		return nil // rules and Jobs read what they name
	}
	var requests, answers []catalog.ClusterAPIChange
	for _, c := range t.Changes(h.Hook.Hook, t.knows(h), t.ClusterAPI) {
		switch {
		case c.Kind == catalog.RequestGains && t.takenOut(h, c):
		case c.Kind == catalog.RequestGains || c.Kind == catalog.RequestDiffers:
			requests = append(requests, c)
		default:
			answers = append(answers, c)
		}
	}
	var findings []Finding
	if len(requests) > 0 {
		f := about(x, h, Warn, ruleRequests)
		f.Problem, f.Remedy = told(requests), t.requestsRemedy(x, h, requests)
		findings = append(findings, f)
	}
	if len(answers) > 0 {
		f := about(x, h, Warn, ruleAnswers)
		f.Problem = told(answers)
		f.Remedy = "check that the handler's answers are meant that way"
		findings = append(findings, f)
	}
	return findings
}

// strict begins what to do about members that are new in requests: most extensions ignore them.
const strict = "if the extension refuses members that it does not know, "

// requestsRemedy returns what to do about changes of the requests of a handler.
func (t *Target) requestsRemedy(x *Extension, h *Handler, changes []catalog.ClusterAPIChange) string {
	if !slices.ContainsFunc(changes, canTakeOut) {
		return "check whether the handler reads it; no policy can remove it"
	}
	state := "state clusterAPIRelease: " + cmp.Or(t.stateable(h), "the release that it was built for") +
		" in an ExtensionPolicy"
	switch {
	case x.Direct:
		return strict + "upgrade it together with Cluster API, or put a gateway before it, and " + state
	case t.knows(h) == nil:
		return strict + state + "; --from " + ClusterAPI + "=VERSION leaves out what that release already has"
	}
	return strict + state
}

// knows returns the newest release whose changes a handler works with: the one that runs now, or the oldest that sent
// the objects that the handler is said to understand. It returns nil if neither is known.
func (t *Target) knows(h *Handler) *catalog.ClusterAPIRelease {
	known, since := t.From, h.Understands()
	running := known == nil
	for _, r := range catalog.ClusterAPIReleases() {
		if running && since != "" && catalog.ObjectVersion(h.Hook.Hook, r.Name) == since {
			return r
		}
		if known != nil && r.Name == known.Name {
			if running = true; catalog.ObjectVersion(h.Hook.Hook, r.Name) == since {
				return known
			}
		}
	}
	return known
}

// stateable returns the release to state for a handler: that which it knows, or the oldest that a policy can state.
// Without one, it returns "".
func (t *Target) stateable(h *Handler) string {
	knows := t.knows(h)
	if knows == nil || knows.Announced {
		return ""
	}
	name := knows.Name
	if compared := catalog.ComparedReleases(); !slices.Contains(compared, name) {
		name = compared[0]
	}
	if sent := catalog.ObjectVersion(h.Hook.Hook, name); h.Understands() != "" && sent != "" && h.Understands() != sent {
		return "" // it was built for another
	}
	return name
}

// takenOut reports whether a policy has the gateway take a change out of the requests of a handler.
func (t *Target) takenOut(h *Handler, c catalog.ClusterAPIChange) bool {
	return slices.ContainsFunc(catalog.Gained(h.Hook.Hook, h.Release),
		func(g catalog.ClusterAPIChange) bool { return g.Release == c.Release && g.Text == c.Text })
}

// told returns changes as one text.
func told(changes []catalog.ClusterAPIChange) string {
	texts := make([]string, len(changes))
	for i, c := range changes {
		since := "since " + c.Release
		if c.Announced {
			since = "announced for " + c.Release
		}
		texts[i] = fmt.Sprintf("%s: %s", since, c.Text)
	}
	return strings.Join(texts, "; ")
}

// proposeReleases completes the policies to apply, so that handlers whose requests would have more than now get what
// they get now. A policy that exists is to be completed by its author.
func (t *Target) proposeReleases(
	x *Extension, findings []Finding, policies []ProposedPolicy, watchFilter string,
) []ProposedPolicy {
	if x.Direct {
		return policies
	}
	for i := range findings {
		f := &findings[i]
		at := slices.IndexFunc(x.Handlers, func(h Handler) bool { return h.Name == f.Handler })
		if f.Rule != ruleRequests || at < 0 || !t.hasGain(&x.Handlers[at]) || t.stateable(&x.Handlers[at]) == "" {
			continue
		}
		h := &x.Handlers[at]
		release := t.stateable(h)
		proposed := slices.IndexFunc(policies, func(p ProposedPolicy) bool {
			return p.ExtensionConfig == x.Name && (p.Handler == "" || p.Handler == h.Name)
		})
		switch {
		case h.Policy != nil:
			f.Remedy = strict + fmt.Sprintf("add clusterAPIRelease: %s to the spec of ExtensionPolicy %s%s", release,
				h.Policy.Name, in(h.Policy.Location))
			continue
		case proposed < 0:
			target := h.Name
			if !slices.ContainsFunc(x.Handlers, func(h Handler) bool { return h.Policy != nil || h.Understands() != "" }) {
				target = "" // all are alike
			}
			policies = append(policies, (&ProposedPolicy{
				ExtensionConfig: x.Name, Handler: target, Release: release, watchFilter: watchFilter,
			}).written())
			proposed = len(policies) - 1
		default:
			if p := &policies[proposed]; p.Release == "" || release < p.Release { // which some need
				p.Release = release
				*p = p.written()
			}
		}
		f.Policies = []string{policies[proposed].Name}
		f.Remedy = strict + "apply ExtensionPolicy " + policies[proposed].Name
	}
	return policies
}

// hasGain reports whether requests of a handler gain something that a policy can take out, and none does.
func (t *Target) hasGain(h *Handler) bool {
	return slices.ContainsFunc(t.Changes(h.Hook.Hook, t.knows(h), t.ClusterAPI),
		func(c catalog.ClusterAPIChange) bool { return canTakeOut(c) && !t.takenOut(h, c) })
}

// canTakeOut reports whether a policy can take a change out of requests.
func canTakeOut(c catalog.ClusterAPIChange) bool {
	return c.Kind == catalog.RequestGains && !c.Announced
}
