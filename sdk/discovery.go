// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// discover answers a discovery with the handlers of its package, and what its own handler returned.
func (x *Extension) discover(ctx context.Context, m *method, in proto.Message) (proto.Message, error) {
	start := time.Now()
	out := m.response.New()
	if len(m.handlers) > 0 {
		h := m.handlers[0]
		answer, err := h.recovered(ctx, in)
		if err != nil {
			return x.fail(ctx, h, start, err)
		}
		out = shallow(answer.ProtoReflect())
	} else if err := (done{}).fill(&handler{method: m}, out); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	handlers := out.Descriptor().Fields().ByName("handlers")
	out.Clear(handlers)
	list := out.Mutable(handlers).List()
	for _, h := range x.handlers {
		if h.method.apiVersion == m.apiVersion && !h.method.discovery {
			element := list.NewElement()
			h.describe(element.Message())
			list.Append(element)
		}
	}
	x.logCall(ctx, m.hook, "", start, nil)
	return out.Interface(), nil
}

// describe writes what Discovery says about the handler to an ExtensionHandler of some version of the contract.
func (h *handler) describe(out protoreflect.Message) {
	set := func(m protoreflect.Message, name protoreflect.Name, value protoreflect.Value) {
		if f := m.Descriptor().Fields().ByName(name); f != nil {
			m.Set(f, value)
		}
	}
	set(out, "name", protoreflect.ValueOfString(h.name))
	set(out, "timeout_seconds", protoreflect.ValueOfInt32(int32(h.timeout/time.Second)))
	if h.clusterAPIVersion != AsSent {
		set(out, "cluster_api_version", protoreflect.ValueOfString(h.clusterAPIVersion))
	}
	fields := out.Descriptor().Fields()
	if f := fields.ByName("failure_policy"); f != nil && f.Enum() != nil {
		name := protoreflect.Name("FAILURE_POLICY_FAIL")
		if h.failurePolicy == policyIgnore {
			name = "FAILURE_POLICY_IGNORE"
		}
		if v := f.Enum().Values().ByName(name); v != nil {
			out.Set(f, protoreflect.ValueOfEnum(v.Number()))
		}
	}
	if f := fields.ByName("request_hook"); f != nil && f.Message() != nil {
		hook := out.Mutable(f).Message()
		set(hook, "api_version", protoreflect.ValueOfString(h.method.apiVersion))
		set(hook, "hook", protoreflect.ValueOfString(h.method.hook))
	}
}
