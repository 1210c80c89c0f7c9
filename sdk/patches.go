// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"iter"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Patches are the templates of a GeneratePatches request, to be edited. As an Answer, they are the JSON Patch (RFC
// 6902) of each item that was changed, made from the difference. Those of a ValidateTopology request can only be read.
//
// An error of an item, such as an object that is not JSON, ends the loop over Items, and is the answer in place of the
// patches; Err returns it. A handler that has no other use for it returns the Patches at the end, and that is all.
//
// Patches are for one goroutine.
type Patches struct {
	request protoreflect.Message
	items   []*Item
	err     error
}

// Item is one template of Patches.
type Item struct {
	patches  *Patches
	message  protoreflect.Message // in the request
	path     string               // "items[0].object"
	original map[string]any       // nil until it is decoded
	shape    *shape               // of the original
	edited   map[string]any
}

// Match selects items. An empty field matches every item.
type Match struct {
	Group      string // of the template: "controlplane.cluster.x-k8s.io"
	Kind       string // of the template: "KubeadmControlPlaneTemplate"
	HolderKind string // of the object that uses it: "MachineDeployment"
}

// NewPatches returns the templates of a request.
func NewPatches(in proto.Message) *Patches {
	p := &Patches{request: in.ProtoReflect()}
	f := p.request.Descriptor().Fields().ByName("items")
	if f == nil || !f.IsList() || f.Message() == nil || f.Message().Fields().ByName("object") == nil {
		p.err = fmt.Errorf("%s has no items with an object to patch", p.request.Descriptor().Name())
		return p
	}
	list := p.request.Get(f).List()
	for i := range list.Len() {
		p.items = append(p.items, &Item{patches: p, message: list.Get(i).Message(), path: fmt.Sprintf("items[%d].object", i)})
	}
	return p
}

// Items returns the items that m matches, in the order of the request. An item is decoded when something is asked of
// it.
func (p *Patches) Items(m Match) iter.Seq[*Item] {
	return func(yield func(*Item) bool) {
		for _, item := range p.items {
			matches := item.matches(m)
			if p.err != nil || matches && !yield(item) {
				return
			}
		}
	}
}

// Err returns the first error of an item.
func (p *Patches) Err() error { return p.err }

// matches reports whether m matches the item.
func (item *Item) matches(m Match) bool {
	if m.HolderKind != "" && item.HolderKind() != m.HolderKind {
		return false
	}
	if m.Group == "" && m.Kind == "" {
		return true
	}
	var header struct{ APIVersion, Kind string }
	if err := decodeObject(item.path, item.raw(), &header); err != nil {
		item.patches.fail(err)
		return false
	}
	group, _, ok := strings.Cut(header.APIVersion, "/")
	if !ok {
		group = "" // the version of the core group
	}
	return (m.Kind == "" || header.Kind == m.Kind) && (m.Group == "" || group == m.Group)
}

func (p *Patches) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// HolderKind returns the kind of the object that uses the template. The item of the request has the rest of the
// reference.
func (item *Item) HolderKind() string {
	f := item.message.Descriptor().Fields().ByName("holder_reference")
	if f == nil || f.Message() == nil {
		return ""
	}
	holder := item.message.Get(f).Message()
	return holder.Get(holder.Descriptor().Fields().ByName("kind")).String()
}

// Message returns the item in the request, such as a *GeneratePatchesRequestItem.
func (item *Item) Message() proto.Message { return item.message.Interface() }

// raw returns the text of the template.
func (item *Item) raw() []byte {
	object := item.message.Get(item.message.Descriptor().Fields().ByName("object")).Message()
	return object.Get(object.Descriptor().Fields().ByName("raw")).Bytes()
}

// Object returns a copy of the template to be edited in place. Its numbers are json.Number.
func (item *Item) Object() map[string]any {
	if item.edited != nil {
		return item.edited
	}
	item.edited = map[string]any{}
	if err := decodeObject(item.path, item.raw(), &item.edited); err != nil {
		item.patches.fail(err)
		return item.edited
	}
	var err error
	if item.original, item.shape, err = ordered(item.raw()); err != nil {
		item.patches.fail(invalidf("%s: %v", item.path, err))
	}
	return item.edited
}

// Load decodes the template as it is in the request, like the function Load.
func (item *Item) Load(out any) error { return decodeObject(item.path, item.raw(), out) }

// Set sets the value at a JSON pointer (RFC 6901), such as "/spec/template/spec/version". It makes the objects on the
// way that are missing or null. In a list, a number is an element, and - a new one at the end.
func (item *Item) Set(pointer string, value any) {
	item.edit(pointer, func(at []string) error {
		plain, err := plainOf(value)
		if err != nil {
			return fmt.Errorf("%s: set %q: %w", item.path, pointer, err)
		}
		if err := set(item.edited, at, plain); err != nil {
			return Failf("%s: set %q: %v", item.path, pointer, err)
		}
		return nil
	})
}

// Remove removes the value at a JSON pointer, if there is one.
func (item *Item) Remove(pointer string) {
	item.edit(pointer, func(at []string) error {
		remove(item.edited, at)
		return nil
	})
}

// edit changes the object at a pointer.
func (item *Item) edit(pointer string, change func(at []string) error) {
	at, err := parsePointer(pointer)
	if item.Object(); item.patches.err != nil {
		return
	}
	if err == nil {
		err = change(at)
	}
	if err != nil {
		item.patches.fail(err)
	}
}

// fill implements Answer.
func (p *Patches) fill(h *handler, out protoreflect.Message) error {
	items := out.Descriptor().Fields().ByName("items")
	for _, item := range p.items {
		if p.err != nil {
			return p.err
		}
		patch, err := item.patch()
		if err != nil {
			return err
		}
		if patch == nil {
			continue
		}
		if items == nil {
			return fmt.Errorf("the response of %s has no patches", h.method.hook)
		}
		element := out.Mutable(items).List().AppendMutable().Message()
		fields := element.Descriptor().Fields()
		element.Set(fields.ByName("uid"), item.message.Get(item.message.Descriptor().Fields().ByName("uid")))
		element.Set(fields.ByName("patch_type"), protoreflect.ValueOfEnum(jsonPatch))
		element.Set(fields.ByName("patch"), protoreflect.ValueOfBytes(patch))
	}
	if p.err != nil {
		return p.err
	}
	return done{}.fill(h, out)
}

// The values of the enum PatchType.
const (
	jsonPatch      = protoreflect.EnumNumber(1)
	jsonMergePatch = protoreflect.EnumNumber(2)
)

// patch returns the JSON Patch of an item, or nil if it was not changed.
func (item *Item) patch() ([]byte, error) {
	if item.original == nil {
		return nil, nil
	}
	edited, err := plainOf(item.edited)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", item.path, err)
	}
	var d differ
	d.compare(item.shape, item.original, edited, false)
	if d.err != nil || len(d.operations) == 0 {
		return nil, d.err
	}
	return marshal(d.operations)
}
