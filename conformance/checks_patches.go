// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// patchable are the parts of a patched template that Cluster API keeps; it silently drops all others.
var patchable = []location{
	{"spec", "template", "spec"},
	{"spec", "template", "metadata", "labels"},
	{"spec", "template", "metadata", "annotations"},
	{"metadata", "labels"},
	{"metadata", "annotations"},
}

var patchChecks = []Check{
	{
		ID: "patches.uid", Level: Must,
		Rule:   "Each patch has the uid of an item of the request.",
		Source: patchEngine + "applyPatchToRequest",
		run: eachPatch(func(p appliedPatch) string {
			if p.item == nil {
				return fmt.Sprintf("no item of the request has the uid %q", p.UID)
			}
			return ""
		}),
	},
	{
		ID: "patches.type", Level: Must,
		Rule:   "patchType of a patch is JSONPatch or JSONMergePatch.",
		Source: hookTypes + "topologymutation_types.go, PatchType",
		run: eachPatch(func(p appliedPatch) string {
			if !p.known() {
				return fmt.Sprintf("patchType is %q", p.PatchType)
			}
			return ""
		}),
	},
	{
		ID: "patches.decode", Level: Must,
		Rule: "A patch has the form that its patchType says: a list of operations (RFC 6902), or an object " +
			"(RFC 7386).",
		Source: patchEngine + "applyPatchToRequest",
		run: eachPatch(func(p appliedPatch) string {
			if err := p.decode(); p.known() && err != nil {
				return fmt.Sprintf("not a %s: %s", p.PatchType, err)
			}
			return ""
		}),
	},
	{
		ID: "patches.apply", Level: Must,
		Rule:   "Patches can be applied to their templates, one after the other.",
		Source: patchEngine + "applyPatchToRequest",
		run: eachPatch(func(p appliedPatch) string {
			if p.err != nil {
				return fmt.Sprintf("it does not apply: %s", p.err)
			}
			return ""
		}),
	},
	{
		ID: "patches.scope", Level: Must,
		Rule: "A patch changes nothing except spec.template.spec and the labels and annotations in metadata and " +
			"spec.template.metadata.",
		Source: topologyBook + "GeneratePatches; " + patchHelper + "patchTemplate",
		run: eachPatch(func(p appliedPatch) string {
			changed, err := changes(p.before, p.after)
			if err != nil {
				return "" // for patches.apply
			}
			before, _ := parse(p.before)
			after, _ := parse(p.after)
			for _, at := range changed {
				if !slices.ContainsFunc(patchable, at.within) && !isEmptyParent(at, before, after, patchable...) {
					return fmt.Sprintf("the patch changes %s, which Cluster API drops", at)
				}
			}
			return ""
		}),
	},
	{
		ID: "patches.idempotent", Level: Should,
		Rule: "Patches do not change templates that are already patched. Cluster API always sends the unpatched " +
			"templates of the class, so a patch that appends also works.",
		Source: topologyBook + "Patch extension guidelines: Idempotence",
		run: func(ctx context.Context, s *session, v *verdict) {
			for _, h := range s.working(ctx, v, "GeneratePatches") {
				req, ok := proto.Clone(s.request(h)).(*hooksv1alpha1.GeneratePatchesRequest)
				if !ok {
					continue
				}
				if !patchAll(req, s.base(ctx, h)) {
					continue // for patches.apply
				}
				x := s.ask(ctx, h, req)
				again, ok := proto.Clone(req).(*hooksv1alpha1.GeneratePatchesRequest)
				if !ok || x.status() != success || !patchAll(again, x) {
					if x.status() != s.base(ctx, h).status() {
						v.failf(x, "it answers differently for templates that are already patched")
					}
					continue
				}
				for i, item := range again.GetItems() {
					at, _ := changes(req.GetItems()[i].GetObject().GetRaw(), item.GetObject().GetRaw())
					if len(at) > 0 {
						v.failf(x, "item %s, which is patched already, is changed again at %s", item.GetUid(), at[0])
						break
					}
				}
			}
		},
	},
}

// appliedPatch is a patch, and its effect.
type appliedPatch struct {
	patchItem
	item   *hooksv1alpha1.GeneratePatchesRequestItem // nil if no item has that uid
	before []byte                                    // the object, with the patches before this one
	after  []byte                                    // nil if it does not apply
	err    error
}

// eachPatch returns a run that reports the problems that check finds in the patches of all handlers of GeneratePatches.
func eachPatch(check func(appliedPatch) string) runFunc {
	return func(ctx context.Context, s *session, v *verdict) {
		handlers, patched, patches := 0, 0, 0
		for _, h := range s.handlers {
			if h.hook.Hook != "GeneratePatches" {
				continue
			}
			handlers++
			x := s.base(ctx, h)
			if x.parsed == nil {
				continue
			}
			req, ok := proto.Clone(s.request(h)).(*hooksv1alpha1.GeneratePatchesRequest)
			if !ok {
				continue
			}
			if len(x.parsed.Items) > 0 {
				patched++
			}
			for i := range x.parsed.Items {
				patches++
				p := applyTo(req, x.parsed.Items[i])
				if problem := check(p); problem != "" {
					v.failf(x, "items[%d] (uid %q): %s; the patch is %s", i, p.UID, problem, excerpt(p.Patch))
				}
			}
		}
		switch {
		case handlers == 0:
			v.skipf("there is no handler of GeneratePatches")
		case patches == 0:
			v.skipf("the realistic request got no patches: give a request of your own that gets patches")
		case patched < handlers:
			v.partly = fmt.Sprintf("only %d of %d handlers returned patches to check: for the other handlers, "+
				"give a request of your own that gets patches", patched, handlers)
		}
	}
}

// applyTo applies a patch to its item of the request.
func applyTo(req *hooksv1alpha1.GeneratePatchesRequest, p patchItem) appliedPatch {
	a := appliedPatch{patchItem: p}
	for _, item := range req.GetItems() {
		if item.GetUid() == p.UID {
			a.item = item
		}
	}
	if a.item == nil || !p.known() || p.decode() != nil {
		return a
	}
	a.before = bytes.Clone(a.item.GetObject().GetRaw())
	if a.after, a.err = p.apply(a.before); a.err == nil {
		a.item.Object = &hooksv1alpha1.RawExtension{Raw: a.after}
	}
	return a
}

// patchAll applies all patches of an answer to the request, and reports whether they applied.
func patchAll(req *hooksv1alpha1.GeneratePatchesRequest, x *exchange) bool {
	if x.parsed == nil {
		return false
	}
	for _, p := range x.parsed.Items {
		if a := applyTo(req, p); a.after == nil {
			return false
		}
	}
	return true
}
