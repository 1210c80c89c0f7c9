// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package handlerchain

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
)

// uncounted are the members of a Machine's spec that never need an update in place, because Cluster API writes them
// itself or because they do not change (internal/util/inplace of Cluster API).
var uncounted = []string{
	"/clusterName", "/bootstrap", "/infrastructureRef", "/providerID", "/minReadySeconds", "/readinessGates", "/taints",
	"/deletion/nodeDrainTimeoutSeconds", "/deletion/nodeVolumeDetachTimeoutSeconds",
	"/deletion/nodeDeletionTimeoutSeconds",
}

// InPlace collects the answers of CanUpdateMachine or CanUpdateMachineSet.
type InPlace struct {
	request  protoreflect.Message
	guard    jsonpatch.Guard
	place    string // what is patched and compared of each object
	objects  []inPlaceObject
	changed  bool // since the request for the last step
	affected bool // whether a step that changed something did not say that it does not affect availability
}

// inPlaceObject is one of the objects of a request, in both states.
type inPlaceObject struct {
	name     protoreflect.Name // of the field
	pointer  string            // of the object: a slash and the name in JSON
	original []byte
	current  object
	desired  object
	ignored  []string // pointers of what does not count
}

// NewInPlace returns the InPlace for a request of CanUpdateMachine or CanUpdateMachineSet, which it does not change.
func NewInPlace(request proto.Message, g jsonpatch.Guard) *InPlace {
	c := &InPlace{request: request.ProtoReflect(), guard: g, place: "/spec"}
	if _, ok := request.(*hooksv1alpha1.CanUpdateMachineSetRequest); ok {
		c.place = "/spec/template/spec"
	}
	current, desired := c.state("current"), c.state("desired")
	fields := current.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.IsMap() { // unknown_members
			continue
		}
		o := inPlaceObject{name: f.Name(), pointer: "/" + f.JSONName(), original: rawOf(current, f)}
		o.current.text, o.desired.text = o.original, rawOf(desired, f)
		if len(c.objects) == 0 { // the Machine or MachineSet
			for _, member := range uncounted {
				o.ignored = append(o.ignored, o.pointer+c.place+member)
			}
		}
		c.objects = append(c.objects, o)
	}
	return c
}

// state returns the objects of the request in one of their states.
func (c *InPlace) state(name protoreflect.Name) protoreflect.Message {
	return c.request.Get(c.request.Descriptor().Fields().ByName(name)).Message()
}

func rawOf(m protoreflect.Message, f protoreflect.FieldDescriptor) []byte {
	raw, _ := m.Get(f).Message().Interface().(*hooksv1alpha1.RawExtension)
	return raw.GetRaw()
}

// Request returns the request for the next step: the one for the chain until a patch has changed it.
func (c *InPlace) Request() proto.Message {
	if !c.changed {
		return c.request.Interface()
	}
	next, current := catalog.Shallow(c.request), catalog.Shallow(c.state("current"))
	for i := range c.objects {
		if o := &c.objects[i]; o.current.tree != nil {
			raw := &hooksv1alpha1.RawExtension{Raw: o.current.json()}
			current.Set(current.Descriptor().Fields().ByName(o.name), protoreflect.ValueOfMessage(raw.ProtoReflect()))
		}
	}
	next.Set(next.Descriptor().Fields().ByName("current"), protoreflect.ValueOfMessage(current))
	return next.Interface()
}

// Add applies the patches of a step's answer, of which allow bounds what they may change, unless it is empty. An error
// that is not a *hook.Error is one of the answer.
func (c *InPlace) Add(answer proto.Message, allow []string) error {
	from := answer.ProtoReflect()
	contributes := false
	for i := range c.objects {
		o := &c.objects[i]
		p, _ := from.Get(patchField(from, o.name)).Message().Interface().(*hooksv1alpha1.Patch)
		if len(p.GetPatch()) == 0 {
			continue
		}
		changed, err := c.apply(o, p, allow)
		if err != nil {
			return fmt.Errorf("patch of %s: %w", o.pointer[1:], err)
		}
		if err := o.current.grown(o.original); err != nil {
			return fmt.Errorf("%s: %w", o.pointer[1:], err)
		}
		contributes = contributes || changed
	}
	if contributes {
		says, ok := answer.(interface{ GetAffectsAvailability() bool })
		affects := from.Descriptor().Fields().ByName("affects_availability")
		c.affected = c.affected || !ok || !from.Has(affects) || says.GetAffectsAvailability()
	}
	return nil
}

func (c *InPlace) apply(o *inPlaceObject, p *hooksv1alpha1.Patch, allow []string) (bool, error) {
	var before object
	if len(allow) > 0 && (o.current.text != nil || o.current.tree != nil) {
		before.text = o.current.json()
	}
	changed, err := o.current.apply(p.GetPatchType(), p.GetPatch(), []string{c.place}, c.guard)
	if err != nil || !changed {
		return false, err
	}
	c.changed = true
	if len(allow) == 0 {
		return true, nil
	}
	claimed, err := c.differences(o, &before, &o.current)
	if err != nil {
		return true, err
	}
	claimed = slices.DeleteFunc(claimed, func(pointer string) bool { return within(pointer, allow) })
	if len(claimed) > 0 {
		return true, fmt.Errorf("it changes %s, which the chain does not allow the step to change", Listed(claimed))
	}
	return true, nil
}

// differences returns the pointers of what differs between two states of an object, where it is compared.
func (c *InPlace) differences(o *inPlaceObject, a, b *object) ([]string, error) {
	values := [2]any{missing{}, missing{}}
	for i, state := range []*object{a, b} {
		if len(state.text) == 0 && state.tree == nil {
			continue
		}
		if err := state.parse(c.guard); err != nil {
			return nil, err
		}
		if v, ok := get(state.tree, c.place); ok {
			values[i] = v
		}
	}
	return differences(nil, o.pointer+c.place, values[0], values[1], &jsonpatch.Meter{Guard: c.guard})
}

// Uncovered returns the pointers of what counts and still differs between the current and the desired objects, in
// order.
func (c *InPlace) Uncovered() ([]string, error) {
	var all []string
	for i := range c.objects {
		o := &c.objects[i]
		if bytes.Equal(o.current.text, o.desired.text) && o.current.text != nil {
			continue
		}
		found, err := c.differences(o, &o.current, &o.desired)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.pointer[1:], err)
		}
		all = append(all, slices.DeleteFunc(found, func(pointer string) bool { return within(pointer, o.ignored) })...)
	}
	slices.Sort(all)
	return all, nil
}

// listedPointers is how many pointers a message has.
const listedPointers = 16

// Listed lists pointers for a message, bounded.
func Listed(pointers []string) string {
	cut := slices.Clone(pointers[:min(len(pointers), listedPointers)])
	for i := range cut {
		cut[i] = text.Cut(cut[i], limits.QuotedBytes)
	}
	return text.Join(append(cut, pointers[len(cut):]...), ", ", listedPointers)
}

// Complete sets the patches of answer to one for each object that the steps have changed, which applies to the
// original, and whether the update affects availability.
func (c *InPlace) Complete(answer proto.Message) {
	m := answer.ProtoReflect()
	contributed := false
	for i := range c.objects {
		o := &c.objects[i]
		if !c.changed || o.current.tree == nil || bytes.Equal(o.current.json(), o.original) {
			continue
		}
		if patch := o.patch(c.place); patch != nil {
			contributed = true
			p := &hooksv1alpha1.Patch{PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH, Patch: patch}
			m.Set(patchField(m, o.name), protoreflect.ValueOfMessage(p.ProtoReflect()))
		}
	}
	if contributed && !c.affected {
		m.Set(m.Descriptor().Fields().ByName("affects_availability"), protoreflect.ValueOfBool(false))
	}
}

// patch returns the JSON patch that makes what is at a place in the original what it is now, or nil if it is the same:
// one operation, which sets the place, or the first object above it that the original lacks.
func (o *inPlaceObject) patch(place string) []byte {
	was := object{text: o.original}
	if was.parse(jsonpatch.Guard{}) != nil || o.current.parse(jsonpatch.Guard{}) != nil {
		return nil // they were parsed before
	}
	before, existed := get(was.tree, place)
	now, _ := get(o.current.tree, place)
	if existed && jsonpatch.Equal(before, now) {
		return nil
	}
	at, parts := place, strings.Split(place, "/")
	for n := 2; n <= len(parts); n++ { // parts[0] is empty
		if at = strings.Join(parts[:n], "/"); !has(was.tree, at) {
			break
		}
	}
	value, _ := get(o.current.tree, at)
	return jsonpatch.Append(nil, []any{map[string]any{"op": "add", "path": at, "value": value}})
}

func patchField(m protoreflect.Message, of protoreflect.Name) protoreflect.FieldDescriptor {
	return m.Descriptor().Fields().ByName(of + "_patch")
}
