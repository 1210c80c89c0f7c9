// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

var inPlaceChecks = []Check{
	{
		ID: "in-place.type", Level: Must,
		Rule:   "patchType of a patch is JSONPatch or JSONMergePatch.",
		Source: inPlaceBook + "CanUpdateMachine",
		run: eachInPlacePatch(func(p inPlacePatch) string {
			if !p.known() {
				return fmt.Sprintf("patchType is %q", p.PatchType)
			}
			return ""
		}),
	},
	{
		ID: "in-place.apply", Level: Must,
		Rule:   "Patches can be decoded, and can be applied to the current objects.",
		Source: "Cluster API, internal/util/patch/patch.go, ApplyPatchToObject",
		run: eachInPlacePatch(func(p inPlacePatch) string {
			if p.known() && p.err != nil {
				return fmt.Sprintf("the patch does not apply to the current object: %s", p.err)
			}
			return ""
		}),
	},
	{
		ID: "in-place.scope", Level: Should,
		Rule: "Patches change only spec. Patches of CanUpdateMachineSet change only spec.template.spec. Cluster API " +
			"drops other changes without an error.",
		Source: inPlaceBook + "CanUpdateMachine; " + inPlaceBook + "CanUpdateMachineSet; " +
			"Cluster API, internal/util/patch/patch.go, ApplyPatchToObject",
		run: eachInPlacePatch(func(p inPlacePatch) string {
			current, _ := parse(p.current)
			after, _ := parse(p.after)
			for _, at := range p.changed {
				if !at.within(p.scope) && !isEmptyParent(at, current, after, p.scope) {
					return fmt.Sprintf("the patch changes %s, which Cluster API drops", at)
				}
			}
			return ""
		}),
	},
	{
		ID: "in-place.desired", Level: Should,
		Rule: "A patch that changes an object turns it into exactly the desired object. If the result differs, " +
			"Cluster API cannot update the machine in place.",
		Source: "Cluster API, controlplane/kubeadm/reconcilers/kubeadmcontrolplane/inplace_canupdatemachine.go, " +
			"matchesMachine",
		run: eachInPlacePatch(func(p inPlacePatch) string {
			if p.after == nil {
				return "" // for in-place.apply
			}
			after, _ := parse(p.after)
			desired, _ := parse(p.desired)
			for _, at := range p.changed {
				// A member that is null is as good as none: a merge patch cannot set it.
				if at.within(p.scope) && !reflect.DeepEqual(lookup(after, at), lookup(desired, at)) {
					return fmt.Sprintf("the patch sets %s to a value other than the desired one", at)
				}
			}
			return ""
		}),
	},
	{
		ID: "in-place.update-failure", Level: Should,
		Rule: "If UpdateMachine answers with status Failure, the answer has no retryAfterSeconds: Failure means that the " +
			"update has failed, and retryAfterSeconds means that the update goes on.",
		Source: inPlaceBook + "UpdateMachine",
		run: func(ctx context.Context, s *session, v *verdict) {
			for _, h := range s.working(ctx, v, "UpdateMachine") {
				if x := s.base(ctx, h); x.status() == failure && x.parsed.RetryAfterSeconds != 0 {
					v.failf(x, "the status is Failure and retryAfterSeconds is %d", x.parsed.RetryAfterSeconds)
				}
			}
		},
	},
}

// inPlacePatch is a patch of an in-place hook, and its effect.
type inPlacePatch struct {
	patch
	member           string
	current, desired []byte
	scope            location
	after            []byte // nil if it does not apply
	err              error
	changed          []location
}

// eachInPlacePatch returns a run that reports the problems that check finds in the patches of all handlers of
// CanUpdateMachine and CanUpdateMachineSet.
func eachInPlacePatch(check func(inPlacePatch) string) runFunc {
	return func(ctx context.Context, s *session, v *verdict) {
		handlers, patches := 0, 0
		for _, h := range s.handlers {
			if !slices.Contains([]string{"CanUpdateMachine", "CanUpdateMachineSet"}, h.hook.Hook) {
				continue
			}
			handlers++
			for _, asked := range s.inPlaceAnswers(ctx, h) {
				if asked.x.parsed == nil {
					continue
				}
				for _, p := range inPlacePatches(asked.x.parsed, asked.req) {
					patches++
					p.try()
					if problem := check(p); problem != "" {
						v.failf(asked.x, "%s: %s; the patch is %s", p.member, problem, excerpt(p.Patch))
					}
				}
			}
		}
		switch {
		case handlers == 0:
			v.skipf("there is no handler of CanUpdateMachine or CanUpdateMachineSet")
		case patches == 0:
			v.skipf("the realistic requests got no patches: the extension cannot make these changes in place")
		}
	}
}

// try applies the patch to the current object.
func (p *inPlacePatch) try() {
	if !p.known() {
		return
	}
	if p.err = p.decode(); p.err == nil {
		p.after, p.err = p.apply(p.current)
	}
	if p.err == nil {
		p.changed, p.err = changes(p.current, p.after)
	}
}

// inPlaceAnswer is an answer, and its request.
type inPlaceAnswer struct {
	req proto.Message
	x   *exchange
}

// inPlaceAnswers returns the answers to the realistic request, which changes the minor version, and to one that changes
// the patch version: many extensions update in place only for the latter.
func (s *session) inPlaceAnswers(ctx context.Context, h *handler) []inPlaceAnswer {
	req := s.request(h)
	answers := []inPlaceAnswer{{req, s.base(ctx, h)}}
	small, ok := withPatchUpdate(req)
	if !ok || !answers[0].x.isAnswer() {
		return answers
	}
	if h.small == nil {
		h.small = s.ask(ctx, h, small)
	}
	return append(answers, inPlaceAnswer{small, h.small})
}

// inPlacePatches returns the patches of an answer, with their objects.
func inPlacePatches(d *document, req proto.Message) []inPlacePatch {
	var all []inPlacePatch
	add := func(p *patch, member string, current, desired *hooksv1alpha1.RawExtension, scope location) {
		if p != nil && (p.PatchType != "" || len(p.Patch) > 0) {
			all = append(all, inPlacePatch{
				patch: *p, member: member, current: current.GetRaw(), desired: desired.GetRaw(), scope: scope,
			})
		}
	}
	switch req := req.(type) {
	case *hooksv1alpha1.CanUpdateMachineRequest:
		scope, c, w := location{"spec"}, req.GetCurrent(), req.GetDesired()
		add(d.MachinePatch, "machinePatch", c.GetMachine(), w.GetMachine(), scope)
		add(d.InfrastructureMachinePatch, "infrastructureMachinePatch", c.GetInfrastructureMachine(),
			w.GetInfrastructureMachine(), scope)
		add(d.BootstrapConfigPatch, "bootstrapConfigPatch", c.GetBootstrapConfig(), w.GetBootstrapConfig(), scope)
	case *hooksv1alpha1.CanUpdateMachineSetRequest:
		scope, c, w := location{"spec", "template", "spec"}, req.GetCurrent(), req.GetDesired()
		add(d.MachineSetPatch, "machineSetPatch", c.GetMachineSet(), w.GetMachineSet(), scope)
		add(d.InfrastructureMachineTemplatePatch, "infrastructureMachineTemplatePatch",
			c.GetInfrastructureMachineTemplate(), w.GetInfrastructureMachineTemplate(), scope)
		add(d.BootstrapConfigTemplatePatch, "bootstrapConfigTemplatePatch", c.GetBootstrapConfigTemplate(),
			w.GetBootstrapConfigTemplate(), scope)
	}
	return all
}
