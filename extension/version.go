// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

// anyVersion asks for discovery in each version of it, the newest first, until the extension has one. The error is that of the
// newest version if it has none.
func anyVersion(c *catalog.Catalog, ask func(h *catalog.Hook) (d Discovered, absent bool, err *hook.Error)) (Discovered, error) {
	var first *hook.Error
	for _, h := range c.Discoveries() {
		d, absent, err := ask(h)
		switch {
		case err == nil:
			return d, nil
		case !absent:
			return Discovered{}, err
		case first == nil:
			first = err
		}
	}
	if first == nil {
		first = hook.Errorf(hook.Internal, "discover handlers: the catalog has no hook %s", hook.Discovery)
	}
	return Discovered{}, first
}

// handlersOf returns the handlers in an answer to discovery of any version.
func handlersOf(answer proto.Message) []*hooksv1alpha1.ExtensionHandler {
	if a, ok := answer.(*hooksv1alpha1.DiscoveryResponse); ok {
		return a.GetHandlers()
	}
	out := &hooksv1alpha1.DiscoveryResponse{}
	copySame(out.ProtoReflect(), answer.ProtoReflect())
	return out.GetHandlers()
}

// copySame gives to what from has under the same name and as the same kind.
func copySame(to, from protoreflect.Message) {
	from.Range(func(source protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		target := to.Descriptor().Fields().ByName(source.Name())
		switch {
		case target == nil || target.Kind() != source.Kind() || target.Cardinality() != source.Cardinality() || target.IsMap() != source.IsMap():
		case target.Message() == nil || target.IsMap() || target.Message().FullName() == source.Message().FullName():
			to.Set(target, v)
		case target.IsList():
			list := to.Mutable(target).List()
			for i := range v.List().Len() {
				copySame(list.AppendMutable().Message(), v.List().Get(i).Message())
			}
		default:
			copySame(to.Mutable(target).Message(), v.Message())
		}
		return true
	})
}
