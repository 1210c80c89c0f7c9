// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalog knows every hook of the contract: its names, its message types, its service, and what its answers
// allow. All of it is read from the descriptors of the generated messages, so that the contract stands in one place.
//
// It does not encode, convert or call; see the packages codec, extension and gateway. A Catalog is immutable and safe
// for concurrent use.
package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

// Category is the part of the contract that a hook belongs to; each is one gRPC service.
type Category string

// The categories.
const (
	Discovery        Category = "Discovery"
	Lifecycle        Category = "LifecycleHooks"
	TopologyMutation Category = "TopologyMutationHooks"
	InPlaceUpdate    Category = "InPlaceUpdateHooks"
	UpgradePlan      Category = "UpgradePlanHooks"
)

// Hook describes one hook.
type Hook struct {
	hook.GroupVersionHook

	Category Category
	Method   string // the full name of the rpc: "/package.Service/Method"
	Request  protoreflect.MessageType
	Response protoreflect.MessageType

	// Mergeable tells whether the answers of several handlers can be made one. Only those of lifecycle hooks can:
	// the others carry a result of their own, and Cluster API allows them one handler.
	Mergeable bool
	// Blocking tells whether an answer may hold the caller with retryAfterSeconds.
	Blocking bool
}

// Singleton tells whether the hook is one of the extension, not of its handlers: only Discovery is.
func (h *Hook) Singleton() bool { return h.Category == Discovery }

// Catalog is the set of all hooks.
type Catalog struct {
	hooks  []*Hook
	byGVH  map[hook.GroupVersionHook]*Hook
	byName map[string]*Hook
}

// New returns the catalog of the contract.
func New() *Catalog {
	c := &Catalog{byGVH: map[hook.GroupVersionHook]*Hook{}, byName: map[string]*Hook{}}
	for _, file := range []protoreflect.FileDescriptor{
		hooksv1alpha1.File_hookgate_hooks_v1alpha1_discovery_proto,
		hooksv1alpha1.File_hookgate_hooks_v1alpha1_lifecycle_hooks_proto,
		hooksv1alpha1.File_hookgate_hooks_v1alpha1_topology_mutation_proto,
		hooksv1alpha1.File_hookgate_hooks_v1alpha1_in_place_update_proto,
		hooksv1alpha1.File_hookgate_hooks_v1alpha1_upgrade_plan_proto,
	} {
		for i := range file.Services().Len() {
			c.addService(file.Services().Get(i))
		}
	}
	slices.SortFunc(c.hooks, func(a, b *Hook) int { return cmp.Compare(a.Hook, b.Hook) })
	return c
}

func (c *Catalog) addService(s protoreflect.ServiceDescriptor) {
	for i := range s.Methods().Len() {
		m := s.Methods().Get(i)
		h := &Hook{
			GroupVersionHook: hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: string(m.Name())},
			Category:         Category(strings.TrimSuffix(string(s.Name()), "Service")),
			Method:           fmt.Sprintf("/%s/%s", s.FullName(), m.Name()),
			Request:          messageType(m.Input()),
			Response:         messageType(m.Output()),
			Blocking:         m.Output().Fields().ByName("retry_after_seconds") != nil,
		}
		h.Mergeable = h.Category == Lifecycle
		c.hooks = append(c.hooks, h)
		c.byGVH[h.GroupVersionHook] = h
		c.byName[strings.ToLower(h.Hook)] = h
	}
}

// messageType returns the Go type behind a descriptor. The generated package registered it, so that it is missing only
// if that package is not the one that was compiled in.
func messageType(d protoreflect.MessageDescriptor) protoreflect.MessageType {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		panic(fmt.Sprintf("catalog: message %s: %v", d.FullName(), err))
	}
	return t
}

// Hooks returns all hooks, by name. Callers must not change the slice.
func (c *Catalog) Hooks() []*Hook { return c.hooks }

// Lookup returns the hook of that group, version and name.
func (c *Catalog) Lookup(gvh hook.GroupVersionHook) (*Hook, bool) {
	h, ok := c.byGVH[gvh]
	return h, ok
}

// ByName returns the hook of that name, in upper or lower case.
func (c *Catalog) ByName(name string) (*Hook, bool) {
	h, ok := c.byName[strings.ToLower(name)]
	return h, ok
}
