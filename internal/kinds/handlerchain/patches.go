// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package handlerchain

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
)

// keptOfTemplates are the places that Cluster API keeps of a patched template.
var keptOfTemplates = []string{"/spec", "/metadata/labels", "/metadata/annotations"}

// Patches collects the answers of GeneratePatches.
type Patches struct {
	request *hooksv1alpha1.GeneratePatchesRequest
	guard   jsonpatch.Guard
	objects []object       // by item
	byUID   map[string]int // of the first item with each uid, as Cluster API finds it
	changed bool
	items   []*hooksv1alpha1.GeneratePatchesResponseItem
	bytes   int // of items
}

// NewPatches returns the Patches for a request, which it does not change.
func NewPatches(r *hooksv1alpha1.GeneratePatchesRequest, g jsonpatch.Guard) *Patches {
	p := &Patches{
		request: r, guard: g, objects: make([]object, len(r.GetItems())), byUID: make(map[string]int, len(r.GetItems())),
	}
	for i, item := range r.GetItems() {
		p.objects[i].text = item.GetObject().GetRaw()
		if _, ok := p.byUID[item.GetUid()]; !ok {
			p.byUID[item.GetUid()] = i
		}
	}
	return p
}

// Request returns the request for the next step: the one for the chain until a patch has changed it.
func (p *Patches) Request() proto.Message {
	if !p.changed {
		return p.request
	}
	next, _ := catalog.Shallow(p.request.ProtoReflect()).Interface().(*hooksv1alpha1.GeneratePatchesRequest)
	next.Items = make([]*hooksv1alpha1.GeneratePatchesRequestItem, len(p.objects))
	for i, item := range p.request.GetItems() {
		if p.objects[i].tree != nil {
			item = withObject(item, p.objects[i].json())
		}
		next.Items[i] = item
	}
	return next
}

// withObject returns a copy of an item with another object. catalog.Shallow would take a tenth of the chain's own time.
func withObject(
	item *hooksv1alpha1.GeneratePatchesRequestItem, object []byte,
) *hooksv1alpha1.GeneratePatchesRequestItem {
	return &hooksv1alpha1.GeneratePatchesRequestItem{
		Uid: item.GetUid(), HolderReference: item.GetHolderReference(), Object: &hooksv1alpha1.RawExtension{Raw: object},
		Variables: item.GetVariables(), UnknownMembers: item.GetUnknownMembers(),
	}
}

// Object returns the object of an item, by its index, as patched so far.
func (p *Patches) Object(i int) []byte { return p.objects[i].json() }

// Kept reports whether Cluster API keeps all that a parsed patch changes in a template. It drops the rest, and what is
// removed with one of the places that it keeps stays.
func Kept(t hooksv1alpha1.PatchType, patch any) bool {
	return jsonpatch.Within(t, patch, keptOfTemplates)
}

// Add applies the patches of a step's answer. An error that is not a *hook.Error is one of the answer.
func (p *Patches) Add(answer *hooksv1alpha1.GeneratePatchesResponse) error {
	for i, item := range answer.GetItems() {
		at, ok := p.byUID[item.GetUid()]
		if !ok {
			return fmt.Errorf("items[%d] is for a uid that the request does not have", i)
		}
		if err := p.Apply(at, item); err != nil {
			return fmt.Errorf("patch of %s: %w", described(p.request.GetItems()[at]), err)
		}
	}
	return nil
}

// Check returns an error if the patches so far have made too much of an object, or of all together, for the next step.
func (p *Patches) Check() error {
	before, after := 0, 0
	for i, item := range p.request.GetItems() {
		original := item.GetObject().GetRaw()
		if err := p.objects[i].grown(original); err != nil {
			return fmt.Errorf("%s: %w", described(item), err)
		}
		before, after = before+len(original), after+len(p.objects[i].json())
	}
	if after > limits.BodyBytes && before <= limits.BodyBytes {
		return fmt.Errorf("with the patches applied, the objects are larger than %d MiB in total", limits.BodyBytes>>20)
	}
	return nil
}

// Apply applies a patch to the object of an item, by its index. An error that is not a *hook.Error is one of the patch.
func (p *Patches) Apply(i int, item *hooksv1alpha1.GeneratePatchesResponseItem) error {
	changed, err := p.objects[i].apply(item.GetPatchType(), item.GetPatch(), keptOfTemplates, p.guard)
	if err != nil || !changed {
		return err
	}
	if p.bytes += len(item.GetUid()) + len(item.GetPatch()); p.bytes > limits.BodyBytes {
		return fmt.Errorf("with this patch, the patches of all steps so far have more than %d MiB", limits.BodyBytes>>20)
	}
	p.items, p.changed = append(p.items, item), true
	return nil
}

// Before returns the Patches as they were when they had n items: after an error, p must not be used.
func (p *Patches) Before(n int, g jsonpatch.Guard) (*Patches, error) {
	again := NewPatches(p.request, g)
	return again, again.Add(&hooksv1alpha1.GeneratePatchesResponse{Items: p.items[:n]})
}

// Items returns the patches of all steps in their order. Applied to the request, as Cluster API applies them, they make
// what the last step made.
func (p *Patches) Items() []*hooksv1alpha1.GeneratePatchesResponseItem { return p.items }

// described names an item by what it is for, because its uid is another one in each call.
func described(item *hooksv1alpha1.GeneratePatchesRequestItem) string {
	return "item " + ItemName(item.GetHolderReference())
}

// ItemName returns the name of the item of a request by what it is for.
func ItemName(h *hooksv1alpha1.HolderReference) string {
	return text.Cut(fmt.Sprintf("%s %s/%s %s", h.GetKind(), h.GetNamespace(), h.GetName(), h.GetFieldPath()),
		2*limits.QuotedBytes)
}
