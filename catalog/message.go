// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// InJSON reports whether a field of the contract's messages is a member of their JSON. Three are not: the handler of a
// request is a segment of its path, unknown_members are members under their own names, and only gRPC extensions can
// state which version of objects a handler understands.
func InJSON(fd protoreflect.FieldDescriptor) bool {
	switch fd.Name() {
	case "unknown_members":
		return false
	case "handler":
		return !strings.HasSuffix(string(fd.ContainingMessage().Name()), "Request")
	case "cluster_api_version":
		return fd.ContainingMessage().Name() != "ExtensionHandler"
	}
	return true
}

// Shallow returns a copy of m that shares the value of every field, so that a caller can set fields without changing m.
func Shallow(m protoreflect.Message) protoreflect.Message {
	c := m.New()
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		c.Set(fd, v)
		return true
	})
	return c
}

// WithHandler returns a copy of a request that names the handler to call and shares everything else. It returns req
// itself if its hook has no handlers, as Discovery.
func WithHandler(req proto.Message, handler string) proto.Message {
	fd := req.ProtoReflect().Descriptor().Fields().ByName("handler")
	if fd == nil {
		return req
	}
	m := Shallow(req.ProtoReflect())
	m.Set(fd, protoreflect.ValueOfString(handler))
	return m.Interface()
}

// UpgradeVersionOf returns the version of Kubernetes that a request of a lifecycle hook is about: the one that an
// upgrade goes to, or has reached. It returns false if requests of the hook are about none.
func UpgradeVersionOf(request proto.Message) (string, bool) {
	r := request.ProtoReflect()
	for _, name := range []protoreflect.Name{"to_kubernetes_version", "kubernetes_version"} {
		if field := r.Descriptor().Fields().ByName(name); field != nil {
			return r.Get(field).String(), true
		}
	}
	return "", false
}

// CopySame sets in to every field of from that has the same name and kind in both, and shares values where it can. It
// is for messages that mean the same in every version, such as the description of a handler; package hookversion
// converts the others.
func CopySame(to, from protoreflect.Message) {
	from.Range(func(source protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		target := to.Descriptor().Fields().ByName(source.Name())
		switch {
		case target == nil || !sameShape(target, source):
		case target.Message() == nil || target.IsMap() || target.Message().FullName() == source.Message().FullName():
			to.Set(target, v)
		case target.IsList():
			list := to.Mutable(target).List()
			for i := range v.List().Len() {
				CopySame(list.AppendMutable().Message(), v.List().Get(i).Message())
			}
		default:
			CopySame(to.Mutable(target).Message(), v.Message())
		}
		return true
	})
}

func sameShape(a, b protoreflect.FieldDescriptor) bool {
	return a.Kind() == b.Kind() && a.Cardinality() == b.Cardinality() && a.IsMap() == b.IsMap()
}

// HandlersOf returns the handlers in an answer to the discovery of any group, in any version.
func HandlersOf(answer proto.Message) []*hooksv1alpha1.ExtensionHandler {
	if a, ok := answer.(interface {
		GetHandlers() []*hooksv1alpha1.ExtensionHandler
	}); ok {
		return a.GetHandlers()
	}
	out := &hooksv1alpha1.DiscoveryResponse{}
	CopySame(out.ProtoReflect(), answer.ProtoReflect())
	return out.GetHandlers()
}
