// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionconfig

import (
	"fmt"
	"strings"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/registry"
)

// JudgeLocal returns the verdict on a policy that is in effect for a registration without a server, which some fields
// mean nothing to.
func (p *Policy) JudgeLocal(reg *registry.Registration) Verdict {
	var idle []string
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"protocol", p.spec.Protocol != ""}, {"circuit", p.spec.Circuit != nil}, {"cache", p.spec.Cache != nil},
		{"onUndiscovered", p.spec.OnUndiscovered != ""}, {"offerAs", p.spec.OfferAs != ""},
	} {
		if field.set {
			idle = append(idle, "spec."+field.name)
		}
	}
	if len(idle) > 0 {
		return Verdict{v1alpha1.InvalidReason, fmt.Sprintf("In effect for %s, except for %s: only for an extension with a "+
			"server do these mean anything", reg.Describe(), strings.Join(idle, ", "))}
	}
	return Verdict{v1alpha1.AcceptedReason, "In effect for " + reg.Describe()}
}

// JudgeLocal returns the verdict on a valid registration without a server, such as that of a HookRule, whose first
// handler answers its hook.
func JudgeLocal(s *registry.Snapshot, reg *registry.Registration, hooks *catalog.Catalog) Verdict {
	if taken := s.TakenLocal(reg.Local.Kind(), reg.Name); taken != "" {
		return Verdict{v1alpha1.NameCollisionReason, fmt.Sprintf("Not served: %q is %s, too: rename one of the two",
			reg.Name, taken)}
	}
	if withheld := s.Withheld(reg.Name); len(withheld) > 0 {
		return Verdict{v1alpha1.WithheldReason, fmt.Sprintf("Not served: spec.hooks of %s does not have %s",
			s.Policies(reg.Name).All, withheld[0].Hook.Hook)}
	}
	h := reg.Handlers[0]
	hub, _ := hooks.Lookup(h.Hook)
	if _, steps := s.StandsFor(h.Hook.GroupHook()); hub != nil && !steps[h.Name+"."+reg.Name] {
		if message := SeveralOffered(s, hub); message != "" {
			return Verdict{v1alpha1.SeveralOfferedReason, message}
		}
	}
	if reg.Audit {
		return Verdict{v1alpha1.AuditReason, fmt.Sprintf("Answers %s as handler %s.%s as if nothing applied: what it would "+
			"say is logged and counted", h.Hook.Hook, h.Name, reg.Name)}
	}
	return Verdict{v1alpha1.ReadyReason, fmt.Sprintf("Answers %s as handler %s.%s", h.Hook.Hook, h.Name, reg.Name)}
}
